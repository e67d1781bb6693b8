# SPDX-License-Identifier: Apache-2.0
# The example programs in README.md and docs/, compiled, and run with ranks as processes and as threads; some also with
# this machine as two nodes.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/*.md)
set(extractor ${PROJECT_SOURCE_DIR}/tools/examples)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${documents} ${extractor})
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${extractor} ${CMAKE_CURRENT_BINARY_DIR}/examples ${documents}
  OUTPUT_VARIABLE examples RESULT_VARIABLE result OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the documents' examples could not be extracted")
endif()

set(on_two_nodes ring post trigger all_reduce messages)
string(REPLACE "\n" ";" examples "${examples}")
foreach(example IN LISTS examples)
  string(REPLACE " " ";" example "${example}")
  list(GET example 0 name)
  list(GET example 1 ranks)
  # Code for the host alone is compiled as such: nvcc takes 4 s more for each.
  set(source ${CMAKE_CURRENT_BINARY_DIR}/examples/${name}.cpp)
  set(kind SOURCES)
  file(STRINGS ${source} device_code REGEX "BEELINE_HOST_DEVICE|__CUDACC__|__global__|cuda[A-Z]|launch\\(")
  if(device_code)
    set(kind KERNELS)
  endif()
  beeline_program(example_${name} ${kind} ${source})
  target_link_libraries(example_${name} PRIVATE beeline)
  if(BEELINE_SANITIZE)  # other builds show what an example forgets to include
    target_compile_options(example_${name} PRIVATE ${BEELINE_TEST_OPTIONS})
    target_link_libraries(example_${name} PRIVATE GTest::gtest)  # for the definitions of what is precompiled
    beeline_reuse_precompiled(example_${name} beeline-test-precompiled)
  endif()
  add_dependencies(tsan_tests example_${name} beeline-launch)
  add_dependencies(default_tests example_${name})
  add_test(NAME example.${name}.processes COMMAND beeline-launch -n ${ranks} $<TARGET_FILE:example_${name}>)
  add_test(NAME example.${name}.threads COMMAND beeline-launch -n ${ranks} --threads $<TARGET_FILE:example_${name}>)
  set_tests_properties(example.${name}.processes example.${name}.threads PROPERTIES TIMEOUT 60
    ${BEELINE_TEST_PROPERTIES})
  set_tests_properties(example.${name}.processes PROPERTIES LABELS default)
  set_tests_properties(example.${name}.threads PROPERTIES LABELS tsan)
  if(name IN_LIST on_two_nodes)
    add_test(NAME example.${name}.nodes
      COMMAND beeline-launch -n ${ranks} --split-nodes 2 $<TARGET_FILE:example_${name}>)
    set_tests_properties(example.${name}.nodes PROPERTIES LABELS default TIMEOUT 60 SKIP_REGULAR_EXPRESSION "need UCX"
      ${BEELINE_TEST_PROPERTIES})
  endif()
endforeach()
