# SPDX-License-Identifier: Apache-2.0
# Compiler options, and the functions that declare targets.

add_library(beeline_options INTERFACE)
target_compile_options(beeline_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr>)
# fmt 9 takes nvcc for a compiler without constexpr functions, and then does not compile as C++20.
target_compile_definitions(beeline_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
if(BEELINE_SANITIZE)
  target_compile_options(beeline_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${BEELINE_SANITIZE};-g1;-fno-omit-frame-pointer>")
  target_link_options(beeline_options INTERFACE -fsanitize=${BEELINE_SANITIZE})
  if(BEELINE_SANITIZE STREQUAL "thread")
    target_compile_options(beeline_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  else()
    # AddressSanitizer sees null pointers by itself; checks of types are dear to compile.
    target_compile_options(beeline_options INTERFACE
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr;-fno-sanitize-recover=all>")
  endif()
endif()

# beeline_program(name SOURCES a.cpp ... [KERNELS k.cpp ...]): a program; KERNELS are portable sources.
function(beeline_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;KERNELS" ${ARGN})
  beeline_portable_sources(${PROGRAM_KERNELS})
  add_executable(${name} ${PROGRAM_SOURCES} ${PROGRAM_KERNELS})
  target_link_libraries(${name} PRIVATE
    beeline beeline_options fmt::fmt-header-only nlohmann_json::nlohmann_json CLI11::CLI11)
endfunction()
