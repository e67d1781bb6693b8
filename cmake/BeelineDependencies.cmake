# SPDX-License-Identifier: Apache-2.0
# Looks also in .deps, where tools/offline-deps puts the packages that a machine lacks.

if(EXISTS ${PROJECT_SOURCE_DIR}/.deps/usr)
  list(APPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/.deps/usr)
endif()
