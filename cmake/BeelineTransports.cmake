# SPDX-License-Identifier: Apache-2.0
# UCX's headers: Debian's libucx-dev, or PyPI's libucx-cu13 in .venv or in the folder BEELINE_UCX_DIR. Its libraries are
# opened at run time.
# Sets BEELINE_UCX and BEELINE_UCX_INCLUDE.
set(BEELINE_WITH_UCX "AUTO" CACHE STRING
  "The transport ucx between nodes: ON (fail if UCX's headers are missing), OFF, AUTO")
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
  message(STATUS "beeline: UCX's headers were not found (or are not wanted); sockets connect nodes")
endif()

# Asio's headers: Debian's libasio-dev. Sets BEELINE_SOCKETS and BEELINE_ASIO_INCLUDE.
set(BEELINE_WITH_SOCKETS "AUTO" CACHE STRING
  "The transport sockets between nodes: ON (fail if Asio's headers are missing), OFF, AUTO")
set(BEELINE_SOCKETS OFF)
if(BEELINE_WITH_SOCKETS)
  find_path(BEELINE_ASIO_INCLUDE asio.hpp NO_CACHE)
  if(BEELINE_ASIO_INCLUDE)
    set(BEELINE_SOCKETS ON)
  elseif(BEELINE_WITH_SOCKETS STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_SOCKETS is ON, but asio.hpp was not found: install libasio-dev")
  endif()
endif()

# OpenSSL's headers: Debian's libssl-dev. Its library is opened at run time. Sets BEELINE_OPENSSL,
# BEELINE_OPENSSL_INCLUDE and BEELINE_OPENSSL_CONFIGURATION (on Debian the processor's folder).
set(BEELINE_WITH_OPENSSL "AUTO" CACHE STRING
  "Encrypted connections (--secure): ON (fail if the headers of OpenSSL 3 are missing), OFF, AUTO")
set(BEELINE_OPENSSL OFF)
if(BEELINE_WITH_OPENSSL)
  find_path(BEELINE_OPENSSL_INCLUDE openssl/ssl.h NO_CACHE)
  find_path(BEELINE_OPENSSL_CONFIGURATION openssl/configuration.h NO_CACHE)  # since version 3
  if(BEELINE_OPENSSL_INCLUDE AND BEELINE_OPENSSL_CONFIGURATION)
    set(BEELINE_OPENSSL ON)
  elseif(BEELINE_WITH_OPENSSL STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_OPENSSL is ON, but the headers of OpenSSL 3 were not found: install libssl-dev")
  endif()
endif()

# liburing's headers: Debian's liburing-dev. Its library is opened at run time. Sets BEELINE_URING and
# BEELINE_URING_INCLUDE.
set(BEELINE_WITH_URING "AUTO" CACHE STRING
  "Transfers of files by io_uring: ON (fail if liburing's headers are missing), OFF, AUTO")
set(BEELINE_URING OFF)
if(BEELINE_WITH_URING)
  find_path(BEELINE_URING_INCLUDE liburing/io_uring.h NO_CACHE)
  if(BEELINE_URING_INCLUDE)
    set(BEELINE_URING ON)
  elseif(BEELINE_WITH_URING STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_URING is ON, but liburing.h was not found: install liburing-dev")
  endif()
endif()
