# SPDX-License-Identifier: Apache-2.0
# Functions that declare tests.

find_package(GTest REQUIRED)

# Build every test of a label: those that tools/test runs under ThreadSanitizer, and under AddressSanitizer.
add_custom_target(tsan_tests)
add_custom_target(asan_tests)

# Tests ask whether the code is right, not how fast it is: the optimizer's time is saved, but for the kernels of litmus
# and conformance tests, whose order of loads and stores it may change.
set(BEELINE_TEST_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-O1>)

# The test programs share what is precompiled for this one. Builds with CUDA go without, and show what a source forgets
# to include, unless they compile sources in batches.
set(BEELINE_PRECOMPILES_TESTS ON)
if(BEELINE_CUDA AND NOT BEELINE_BATCHES)
  set(BEELINE_PRECOMPILES_TESTS OFF)
endif()
if(BEELINE_PRECOMPILES_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
  beeline_program(beeline-test-precompiled SOURCES ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(beeline-test-precompiled PRIVATE GTest::gtest_main)
  target_compile_options(beeline-test-precompiled PRIVATE ${BEELINE_TEST_OPTIONS})
  beeline_precompile(beeline-test-precompiled <gtest/gtest.h>)
endif()

# Properties of every test.
set(BEELINE_TEST_PROPERTIES)
if(BEELINE_SANITIZE)  # shadow memory leaves little address space
  # UCX hooks calls that unmap memory where it registers some, which ThreadSanitizer does not survive.
  set(BEELINE_TEST_PROPERTIES ENVIRONMENT BEELINE_SLOT_SHIFT=32 ENVIRONMENT_MODIFICATION UCX_MEM_EVENTS=set:n)
endif()

# ThreadSanitizer knows no fences: tests are linked with some for it.
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

# beeline_test(name SOURCES a.cpp ... [KERNELS k.cpp ...] [LABEL tsan asan] [TIMEOUT seconds] [BY_SUITE]): a GoogleTest
# program.
# LABEL tsan: its ranks are threads, and it also runs under ThreadSanitizer; asan: it also runs under AddressSanitizer
# and UndefinedBehaviorSanitizer.
# BY_SUITE: ctest runs the tests of a suite in one process, where they share what the suite has set up.
function(beeline_test name)
  cmake_parse_arguments(TEST "BY_SUITE" "TIMEOUT" "SOURCES;KERNELS;LABEL" ${ARGN})
  beeline_program(${name} SOURCES ${TEST_SOURCES} KERNELS ${TEST_KERNELS})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${BEELINE_TEST_OPTIONS})
  if(BEELINE_PRECOMPILES_TESTS)
    beeline_reuse_precompiled(${name} beeline-test-precompiled)
  endif()
  if(TARGET beeline_fence_clocks)
    target_link_libraries(${name} PRIVATE beeline_fence_clocks)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  set(properties TIMEOUT ${TEST_TIMEOUT} ${BEELINE_TEST_PROPERTIES})
  foreach(label IN LISTS TEST_LABEL)
    add_dependencies(${label}_tests ${name})
  endforeach()
  if(TEST_LABEL)
    string(REPLACE ";" "_" labels "${TEST_LABEL}")  # ctest -L takes a part of a label
    list(APPEND properties LABELS "${labels}")
  endif()
  if(TEST_BY_SUITE)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake CONTENT
"set(name ${name})
set(program [==[$<TARGET_FILE:${name}>]==])
set(results [==[${PROJECT_BINARY_DIR}/suites]==])
set(properties ${properties})
include([==[${PROJECT_SOURCE_DIR}/cmake/BeelineTestSuites.cmake]==])
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
    return()
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES ${properties})
endfunction()
