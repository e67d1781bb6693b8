# SPDX-License-Identifier: Apache-2.0
# Looks also where the project's own commands put what a machine lacks: .deps (tools/offline-deps).

if(EXISTS ${PROJECT_SOURCE_DIR}/.deps/usr)
  list(APPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/.deps/usr)
endif()
