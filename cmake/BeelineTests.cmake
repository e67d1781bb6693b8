# SPDX-License-Identifier: Apache-2.0
# Functions that declare tests.

find_package(GTest REQUIRED)

# Build every test of a label: of the default build, even where the C++ tests run under sanitizers; under
# ThreadSanitizer; and under AddressSanitizer.
add_custom_target(default_tests)
add_custom_target(tsan_tests)
add_custom_target(asan_tests)
# Translates the kernels of tests to PTX, to find nvcc's errors where no GPU runs the kernels.
add_custom_target(ptx_of_tests)

# Tests check that code is right, not that it is fast, so little is optimized, except the kernels of litmus and
# conformance tests, in which it may reorder loads and stores. Optimizing the checks of sanitizers takes long. Checks of
# alignment are a fifth of the time to compile and half of the object: the library's sources have them, and the
# conformance cases, which instantiate all device operations. Linked after `beeline_options`, which enable the checks.
add_library(beeline_test_options INTERFACE)
set(options -O1)
if(BEELINE_SANITIZE)
  set(options -O0)
endif()
if(BEELINE_SANITIZE MATCHES "undefined")
  list(APPEND options -fno-sanitize=alignment)
endif()
target_compile_options(beeline_test_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")

# The test programs share the precompiled headers of this one. Builds with CUDA precompile none, and so find missing
# includes, unless they compile sources in batches.
set(BEELINE_PRECOMPILES_TESTS ON)
if(BEELINE_CUDA AND NOT BEELINE_BATCHES)
  set(BEELINE_PRECOMPILES_TESTS OFF)
endif()
if(BEELINE_PRECOMPILES_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
  beeline_program(beeline-test-precompiled SOURCES ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(beeline-test-precompiled PRIVATE GTest::gtest_main beeline_test_options)
  beeline_precompile(beeline-test-precompiled <gtest/gtest.h>)
endif()

# beeline_test_data(a.cpp...): sources that compute what tests write and expect. Sanitizers would take a third of the
# tests' time there. They instantiate no templates that other sources share, which may take either's.
function(beeline_test_data)
  if(BEELINE_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_OPTIONS "-O2;-fno-sanitize=all" SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Properties of every test.
set(BEELINE_TEST_PROPERTIES)
if(BEELINE_SANITIZE)  # shadow memory leaves little address space
  # UCX hooks calls that unmap memory where it registers some, which ThreadSanitizer does not survive.
  set(BEELINE_TEST_PROPERTIES ENVIRONMENT BEELINE_SLOT_SHIFT=32 ENVIRONMENT_MODIFICATION UCX_MEM_EVENTS=set:n)
endif()

# ThreadSanitizer knows no fences: tests are linked with fences for it.
if(BEELINE_SANITIZE STREQUAL "thread")
  add_library(beeline_fence_clocks OBJECT ${PROJECT_SOURCE_DIR}/tests/support/fence_clocks.cpp)
  set(wrapped atomic_thread_fence)
  foreach(bits 8 16 32 64)
    foreach(operation load store exchange fetch_add fetch_and fetch_or)
      list(APPEND wrapped atomic${bits}_${operation})
    endforeach()
  endforeach()
  list(TRANSFORM wrapped PREPEND "LINKER:--wrap=__tsan_")
  target_link_options(beeline_fence_clocks INTERFACE ${wrapped})
endif()

# beeline_ptx_of(target kernel.cpp...): lets `ptx_of_tests` translate these kernels of the target.
function(beeline_ptx_of target)
  if(NOT BEELINE_CUDA OR NOT ARGN)
    return()
  endif()
  add_library(${target}_ptx OBJECT EXCLUDE_FROM_ALL ${ARGN})
  list(GET BEELINE_CUDA_ARCHITECTURES 0 first_architecture)
  set_target_properties(${target}_ptx PROPERTIES CUDA_ARCHITECTURES ${first_architecture} CUDA_PTX_COMPILATION ON)
  target_include_directories(${target}_ptx PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target}_ptx PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_link_libraries(${target}_ptx PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  add_dependencies(ptx_of_tests ${target}_ptx)
endfunction()

# beeline_test_batches(target): beeline_batches for a target of tests, and for its kernels that are translated to PTX.
# Call it after all properties of its sources have been set.
function(beeline_test_batches target)
  beeline_batches(${target})
  if(TARGET ${target}_ptx)
    beeline_batches(${target}_ptx)
  endif()
endfunction()

# beeline_test(name SOURCES a.cpp ... [KERNELS k.cpp ...] LABEL label...): a GoogleTest program of several sources, in
# which no two suites have the same name.
# LABEL: asan for tests that run under AddressSanitizer and UndefinedBehaviorSanitizer; tsan for tests that also run
# under ThreadSanitizer, as their ranks are threads; default for tests that neither can run; gpu for tests of GPUs.
# SAME_KERNELS: another test has the same kernels, so they are not translated to PTX again.
# Without CUDA ctest runs the tests of a suite in one process, except with BY_CASE, for programs that fork while threads
# of an earlier test may hold locks. With CUDA each test has a process of its own, because a process that has used CUDA
# may not fork, except with BY_SUITE: conformance tests handle that themselves.
function(beeline_test name)
  cmake_parse_arguments(TEST "BY_SUITE;BY_CASE;SAME_KERNELS" "" "SOURCES;KERNELS;LABEL" ${ARGN})
  beeline_program(${name} SOURCES ${TEST_SOURCES} KERNELS ${TEST_KERNELS})
  target_link_libraries(${name} PRIVATE GTest::gtest_main beeline_test_options)
  if(BEELINE_PRECOMPILES_TESTS)
    beeline_reuse_precompiled(${name} beeline-test-precompiled)
  endif()
  if(TARGET beeline_fence_clocks)
    target_link_libraries(${name} PRIVATE beeline_fence_clocks)
  endif()
  if(NOT "default" IN_LIST TEST_LABEL AND NOT TEST_SAME_KERNELS)  # those of "default" are compiled to machine code
    beeline_ptx_of(${name} ${TEST_KERNELS})
  endif()
  foreach(label IN LISTS TEST_LABEL)
    if(TARGET ${label}_tests)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  string(REPLACE ";" "_" labels "${TEST_LABEL}")  # ctest -L takes a part of a label
  set(properties LABELS ${labels} ${BEELINE_TEST_PROPERTIES})
  if(TEST_BY_SUITE OR NOT (BEELINE_CUDA OR TEST_BY_CASE))
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake CONTENT
"set(name ${name})
set(program [==[$<TARGET_FILE:${name}>]==])
set(results [==[${PROJECT_BINARY_DIR}/suites]==])
set(properties TIMEOUT 300 ${properties})
include([==[${PROJECT_SOURCE_DIR}/cmake/BeelineTestSuites.cmake]==])
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
    return()
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES TIMEOUT 120 ${properties})
endfunction()
