# SPDX-License-Identifier: Apache-2.0
# Compiler options, and the functions that declare targets.

add_library(beeline_options INTERFACE)
target_compile_options(beeline_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr>)
# fmt 9 assumes that nvcc lacks constexpr functions, and then does not compile as C++20.
target_compile_definitions(beeline_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
if(BEELINE_SANITIZE)
  target_compile_options(beeline_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${BEELINE_SANITIZE};-g1;-fno-omit-frame-pointer>")
  target_link_options(beeline_options INTERFACE -fsanitize=${BEELINE_SANITIZE})
  # Each of some fifty programs is linked in half or a quarter of the time. Other builds use the usual linker.
  find_program(BEELINE_LLD ld.lld)
  if(BEELINE_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(beeline_options INTERFACE -fuse-ld=lld)
  endif()
  if(BEELINE_SANITIZE STREQUAL "thread")
    target_compile_options(beeline_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  else()
    # AddressSanitizer itself finds null pointers and accesses beyond an object, and so most that use a pointer that
    # overflowed: checks of such pointers take an eighth of the time to compile. Checks of types take long, too.
    target_compile_options(beeline_options INTERFACE
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,object-size,pointer-overflow,vptr;-fno-sanitize-recover=all>")
  endif()
endif()

# fmt, for the library and targets that link it. The library compiles fmt's functions once if it knows the version
# (src/core/fmt_functions.cpp); otherwise every object compiles them.
add_library(beeline_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(BEELINE_COMPILES_FMT ON)
  target_include_directories(beeline_fmt SYSTEM INTERFACE
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  set(BEELINE_COMPILES_FMT OFF)
  target_link_libraries(beeline_fmt INTERFACE fmt::fmt-header-only)
endif()

# beeline_precompile(target [header...]): parses these headers and the library's once for the target.
function(beeline_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN} <beeline/beeline.hpp> <fmt/format.h> <algorithm> <array> <chrono>
    <functional> <map> <memory> <mutex> <optional> <span> <string> <thread> <vector>)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)  # for ccache
endfunction()

# beeline_reuse_precompiled(target from): uses the precompiled headers of the target `from`, which has the same options.
# Both are libraries or both programs: the options for position-independent code differ between the two.
function(beeline_reuse_precompiled target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# beeline_batches(target): with BEELINE_BATCHES the target's sources are compiled in batches, each of which includes
# BEELINE_BATCH_SIZE of them. Kernels that nvcc compiles have batches of BEELINE_CUDA_BATCH_SIZE, and sources that run
# once have their own. Batches of eight took two thirds of the time under sanitizers, and half of it elsewhere. Two of
# sixteen took 22.8 core-s, one of 32 18.3 under AddressSanitizer and 20.1 without. A name in an anonymous namespace
# must not occur in two sources of a target (tools/check names). Sources with options or definitions of their own are
# compiled alone. CMake's UNITY_BUILD includes absolute paths, with which ccache could not share objects among folders.
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

# Used by beeline_batches: writes the sources of one kind into a batch, and begins the next.
macro(beeline_write_batch kind)
  set(batch ${CMAKE_CURRENT_BINARY_DIR}/${target}_batches/batch_${number}.cpp)
  math(EXPR number "${number} + 1")
  file(CONFIGURE OUTPUT ${batch} CONTENT "${text_${kind}}" @ONLY)
  # GCC takes the sources for headers, and warns of local names that hide others and of expectations after an `if`;
  # the other builds still warn.
  set(options "-Wno-shadow;-Wno-dangling-else;$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>")
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

# beeline_sources_run_once(a.cpp ...): sources that parse options or print a line. Optimizing their templates of CLI11
# and nlohmann_json takes long and gains nothing. At -O0 their copies of inline functions may replace optimized ones
# at link time: only builds for tests have it.
set(BEELINE_OPTIONS_TO_RUN_ONCE -O1)
if(BEELINE_SANITIZE OR (BEELINE_BATCHES AND NOT BEELINE_DEMO))
  set(BEELINE_OPTIONS_TO_RUN_ONCE -O0)
endif()
function(beeline_sources_run_once)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${BEELINE_OPTIONS_TO_RUN_ONCE})
endfunction()

# beeline_program(name SOURCES a.cpp ... [KERNELS k.cpp ...]): a program; KERNELS are portable sources. A program that
# calls collectives also links the target beeline.
function(beeline_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;KERNELS" ${ARGN})
  beeline_portable_sources(${PROGRAM_KERNELS})
  add_executable(${name} ${PROGRAM_KERNELS} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE
    beeline_base beeline_options beeline_fmt nlohmann_json::nlohmann_json CLI11::CLI11)
endfunction()
