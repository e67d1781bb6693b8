# SPDX-License-Identifier: Apache-2.0
# Read by ctest: adds a test for each suite of the GoogleTest program `program`, which writes the result of each of its
# tests to `results`/TEST.xml, where tools/summary reads it. ctest counts a suite as skipped when all of its tests are.
if(NOT EXISTS "${program}")
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE list RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests: ${status}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${list}")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.$")
    set(test "${name}.${CMAKE_MATCH_1}")
    add_test("${test}" "${program}" "--gtest_filter=${CMAKE_MATCH_1}.*" "--gtest_output=xml:${results}/${test}.xml")
    set_tests_properties("${test}" PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests" ${properties})
  endif()
endforeach()
