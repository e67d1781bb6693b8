# SPDX-License-Identifier: Apache-2.0
# MPI, a peer and baseline for benchmarks and applications, never needed by the library: Debian's libopenmpi-dev, or
# another one that CMake finds. Sets BEELINE_MPI (whether MPI was found).
set(BEELINE_WITH_MPI "AUTO" CACHE STRING "MPI, as a peer and baseline: ON (fail if it is missing), OFF, AUTO")
set(BEELINE_MPI OFF)

# Debian has MPI's compilers without its headers; find_package then fails, even if it is called with QUIET. MPI_HOME or
# MPI_CXX_COMPILER name another MPI, which is not checked.
function(beeline_mpi_has_headers result)
  find_program(BEELINE_MPI_COMPILER NAMES mpicxx mpic++)
  set(status 0)
  if(BEELINE_MPI_COMPILER AND NOT MPI_HOME AND NOT MPI_CXX_COMPILER AND NOT DEFINED ENV{MPI_HOME})
    set(source ${CMAKE_BINARY_DIR}/CMakeFiles/mpi_header.cpp)
    file(WRITE ${source} "#include <mpi.h>\n")
    execute_process(COMMAND ${BEELINE_MPI_COMPILER} -E ${source} RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(status EQUAL 0)
    set(${result} ON PARENT_SCOPE)
  else()
    message(STATUS "beeline: ${BEELINE_MPI_COMPILER} finds no mpi.h")
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

if(BEELINE_WITH_MPI STREQUAL "ON")
  find_package(MPI REQUIRED COMPONENTS CXX)
elseif(BEELINE_WITH_MPI)
  beeline_mpi_has_headers(headers)
  if(headers)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
endif()
if(BEELINE_WITH_MPI AND MPI_CXX_FOUND)
  set(BEELINE_MPI ON)
  message(STATUS "beeline: beside MPI ${MPI_CXX_VERSION}")
else()
  message(STATUS "beeline: MPI was not found (or is not wanted); benchmarks and applications do without it")
endif()
