# SPDX-License-Identifier: Apache-2.0
# Writes HEADER with the commit of SOURCE (or with COMMIT, if given) unless HEADER already has it.
cmake_minimum_required(VERSION 3.24)
if(NOT COMMIT)
  execute_process(COMMAND git describe --always --dirty --abbrev=40 --exclude=* WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT "")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define BEELINE_COMMIT \"@COMMIT@\"\n" @ONLY)
