# SPDX-License-Identifier: Apache-2.0
# UCX's headers: Debian's libucx-dev, or those of PyPI's libucx-cu13 in .venv or where BEELINE_UCX_DIR says. Its
# libraries are opened at run time.
# Sets BEELINE_UCX (whether worlds of this build may span nodes) and BEELINE_UCX_INCLUDE.
set(BEELINE_WITH_UCX "AUTO" CACHE STRING "Ranks on several nodes: ON (fail if UCX's headers are missing), OFF, AUTO")
set(BEELINE_UCX_DIR "" CACHE PATH "Folder that holds UCX's ucp/api/ucp.h")

set(BEELINE_UCX OFF)
if(BEELINE_WITH_UCX)
  file(GLOB venv_ucx ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/libucx/include)
  find_path(BEELINE_UCX_INCLUDE ucp/api/ucp.h HINTS ${BEELINE_UCX_DIR} ${venv_ucx} NO_CACHE)
  if(BEELINE_UCX_INCLUDE)
    set(BEELINE_UCX ON)
  elseif(BEELINE_WITH_UCX STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_UCX is ON, but ucp/api/ucp.h was not found: install libucx-dev, or PyPI's "
                        "libucx-cu13 and set BEELINE_UCX_DIR to its libucx/include")
  endif()
endif()
if(BEELINE_UCX)
  message(STATUS "beeline: UCX's headers in ${BEELINE_UCX_INCLUDE}")
else()
  message(STATUS "beeline: UCX's headers were not found (or are not wanted); worlds stay inside one node")
endif()
