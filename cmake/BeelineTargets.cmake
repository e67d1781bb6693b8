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
    # AddressSanitizer sees null pointers and accesses beyond an object by itself; checks of types are dear to compile.
    target_compile_options(beeline_options INTERFACE
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,object-size,vptr;-fno-sanitize-recover=all>")
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
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# beeline_reuse_precompiled(target from): what is precompiled for the target `from`, which has the same options. Both
# are libraries or both programs: the options for position-independent code differ.
function(beeline_reuse_precompiled target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# beeline_batches(target): with BEELINE_BATCHES the target's sources are compiled in batches, each of which includes
# BEELINE_BATCH_SIZE of them (kernels apart where nvcc compiles these: BEELINE_CUDA_BATCH_SIZE; sources that run once
# apart, too). Batches of eight take two thirds of the time under sanitizers, half of it elsewhere. A name in an
# anonymous namespace must not occur in two sources of a target. Sources with other options or definitions of their own
# are compiled alone. CMake's UNITY_BUILD includes absolute paths, by which ccache would not share objects among
# folders.
function(beeline_batches target)
  if(NOT BEELINE_BATCHES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(number 0)
  set(batch_size_CXX ${BEELINE_BATCH_SIZE})
  set(batch_size_ONCE ${BEELINE_BATCH_SIZE})
  set(batch_size_CUDA ${BEELINE_CUDA_BATCH_SIZE})
  set(compiled)
  foreach(kind CXX ONCE CUDA)
    set(text_${kind} "")
    set(count_${kind} 0)
  endforeach()
  foreach(source IN LISTS sources)
    get_source_file_property(kind ${source} LANGUAGE)
    if(NOT kind STREQUAL "CUDA")
      set(kind CXX)
    endif()
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(options STREQUAL BEELINE_OPTIONS_TO_RUN_ONCE)
      set(kind ONCE)
    elseif(options)
      set(kind ALONE)
    endif()
    if(definitions OR kind STREQUAL "ALONE")
      list(APPEND compiled ${source})
      continue()
    endif()
    string(APPEND text_${kind} "#include \"${source}\"\n")
    math(EXPR count_${kind} "${count_${kind}} + 1")
    if(count_${kind} EQUAL batch_size_${kind})
      beeline_write_batch(${kind})
    endif()
  endforeach()
  foreach(kind CUDA CXX ONCE)
    if(count_${kind} GREATER 0)
      beeline_write_batch(${kind})
    endif()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${compiled})
  target_include_directories(${target} BEFORE PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# Of beeline_batches: writes the sources of a kind, and begins the next batch.
macro(beeline_write_batch kind)
  set(batch ${CMAKE_CURRENT_BINARY_DIR}/${target}_batches/batch_${number}.cpp)
  math(EXPR number "${number} + 1")
  file(CONFIGURE OUTPUT ${batch} CONTENT "${text_${kind}}" @ONLY)
  # GCC takes the sources for headers, and one's local names for shadows of another's: the other builds warn instead.
  set(options "-Wno-shadow;$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>")
  if(${kind} STREQUAL "ONCE")
    list(APPEND options ${BEELINE_OPTIONS_TO_RUN_ONCE})
  endif()
  if(${kind} STREQUAL "CUDA")
    set_source_files_properties(${batch} PROPERTIES LANGUAGE CUDA)
  endif()
  set_source_files_properties(${batch} PROPERTIES COMPILE_OPTIONS "${options}")
  list(APPEND compiled ${batch})
  set(text_${kind} "")
  set(count_${kind} 0)
endmacro()

# beeline_sources_run_once(a.cpp ...): sources that parse options or print a line. Templates of CLI11 and nlohmann_json
# take the optimizer long, for nothing.
set(BEELINE_OPTIONS_TO_RUN_ONCE -O1)
if(BEELINE_SANITIZE)
  set(BEELINE_OPTIONS_TO_RUN_ONCE -O0)
endif()
function(beeline_sources_run_once)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${BEELINE_OPTIONS_TO_RUN_ONCE})
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
