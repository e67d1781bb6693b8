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

# fmt, for the library and what is linked with it. The library compiles fmt's functions (src/core/fmt_functions.cpp),
# where it knows that version's; otherwise every object does.
add_library(beeline_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(BEELINE_COMPILES_FMT ON)
  target_include_directories(beeline_fmt SYSTEM INTERFACE
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  set(BEELINE_COMPILES_FMT OFF)
  target_link_libraries(beeline_fmt INTERFACE fmt::fmt-header-only)
endif()

# beeline_precompile(target [header...]): these headers and the library's, parsed once for the target.
function(beeline_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN} <beeline/beeline.hpp> <fmt/format.h> <algorithm> <array> <chrono>
    <functional> <map> <memory> <mutex> <optional> <span> <string> <thread> <vector>)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# beeline_sources_run_once(a.cpp ...): sources that parse options or print a line. Templates of CLI11 and nlohmann_json
# take the optimizer long, for nothing.
function(beeline_sources_run_once)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
endfunction()

# beeline_program(name SOURCES a.cpp ... [KERNELS k.cpp ...]): a program; KERNELS are portable sources. One that calls
# collectives links the target beeline too.
function(beeline_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;KERNELS" ${ARGN})
  beeline_portable_sources(${PROGRAM_KERNELS})
  add_executable(${name} ${PROGRAM_KERNELS} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE
    beeline_base beeline_options beeline_fmt nlohmann_json::nlohmann_json CLI11::CLI11)
endfunction()
