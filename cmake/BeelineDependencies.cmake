# SPDX-License-Identifier: Apache-2.0
# Looks also where the project's own commands put what a machine lacks: .deps (tools/offline-deps), .venv (tools/setup).

if(EXISTS ${PROJECT_SOURCE_DIR}/.deps/usr)
  list(APPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/.deps/usr)
endif()
file(GLOB BEELINE_VENV_CCCL ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/include/cccl)
