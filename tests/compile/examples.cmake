# SPDX-License-Identifier: Apache-2.0
# The example programs in README.md and docs/ are compiled, and run with ranks as processes and as threads; some also
# with this machine as two nodes.
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

# beeline_example(name KIND source.cpp): an example's program; KIND is SOURCES or KERNELS, as in beeline_program.
function(beeline_example name kind source)
  beeline_program(${name} ${kind} ${source})
  target_link_libraries(${name} PRIVATE beeline)
  if(BEELINE_SANITIZE)  # other builds find missing includes
    # GTest for the definitions in the precompiled headers.
    target_link_libraries(${name} PRIVATE beeline_test_options GTest::gtest)
    beeline_reuse_precompiled(${name} beeline-test-precompiled)
  endif()
  add_dependencies(tsan_tests ${name} beeline-launch)
  add_dependencies(default_tests ${name})
endfunction()

set(on_two_nodes ring post trigger all_reduce messages)
string(REPLACE "\n" ";" examples "${examples}")
set(batched)
foreach(example IN LISTS examples)
  string(REPLACE " " ";" example "${example}")
  list(GET example 0 name)
  list(GET example 1 ranks)
  # Code without kernels is compiled by the C++ compiler: nvcc takes 4 s more for each example.
  set(source ${CMAKE_CURRENT_BINARY_DIR}/examples/${name}.cpp)
  file(STRINGS ${source} of_gaspi REGEX "^#include <GASPI")
  if(of_gaspi)  # its ranks are processes, and builds under sanitizers have no such library
    if(TARGET beeline_gaspi)
      beeline_program(example_${name} SOURCES ${source})
      target_link_libraries(example_${name} PRIVATE beeline_gaspi)
      add_dependencies(default_tests example_${name})
      add_test(NAME example.${name}.processes COMMAND beeline-launch -n ${ranks} $<TARGET_FILE:example_${name}>)
      set_tests_properties(example.${name}.processes PROPERTIES LABELS default TIMEOUT 60)
    endif()
    continue()
  endif()
  set(kind SOURCES)
  file(STRINGS ${source} device_code REGEX "BEELINE_HOST_DEVICE|__CUDACC__|__global__|cuda[A-Z]|launch\\(")
  if(device_code)
    set(kind KERNELS)
  endif()
  if(BEELINE_BATCHES AND (device_code OR BEELINE_SANITIZE))
    list(APPEND batched ${name})
  else()
    beeline_example(example_${name} ${kind} ${source})
  endif()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/example_${name})
  add_test(NAME example.${name}.processes COMMAND beeline-launch -n ${ranks} ${program})
  add_test(NAME example.${name}.threads COMMAND beeline-launch -n ${ranks} --threads ${program})
  set_tests_properties(example.${name}.processes example.${name}.threads PROPERTIES TIMEOUT 60
    ${BEELINE_TEST_PROPERTIES})
  set_tests_properties(example.${name}.processes PROPERTIES LABELS default)
  set_tests_properties(example.${name}.threads PROPERTIES LABELS tsan)
  if(name IN_LIST on_two_nodes)
    add_test(NAME example.${name}.nodes COMMAND beeline-launch -n ${ranks} --split-nodes 2 ${program})
    set_tests_properties(example.${name}.nodes PROPERTIES LABELS default TIMEOUT 60 SKIP_REGULAR_EXPRESSION "need UCX"
      ${BEELINE_TEST_PROPERTIES})
  endif()
endforeach()

# In batches, the examples with kernels are one program, which runs the example by whose name it is called: nvcc takes
# 22 s for all, and 112 s one by one. Under sanitizers all examples are: other builds find missing includes. Each is in
# a namespace of its own, after the headers that they include.
if(batched)
  set(includes)
  set(texts "")
  set(calls "")
  foreach(name IN LISTS batched)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/examples/${name}.cpp)
    file(STRINGS ${source} lines REGEX "^#include ")
    list(APPEND includes ${lines})
    string(APPEND texts "namespace example_${name} {\n#include \"${name}.cpp\"\n}\n")
    string(APPEND calls "  if (name == \"example_${name}\") return example_${name}::main();\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(batch ${CMAKE_CURRENT_BINARY_DIR}/examples/batch.cpp)
  file(CONFIGURE OUTPUT ${batch} CONTENT "#include <cerrno>\n#include <string_view>\n@includes@\n@texts@
int main() {
  const std::string_view name = program_invocation_short_name;
@calls@  return 127;
}
" @ONLY)
  beeline_example(batched_examples KERNELS ${batch})
  foreach(name IN LISTS batched)
    add_custom_command(TARGET batched_examples POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
      $<TARGET_FILE_NAME:batched_examples> ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/example_${name})
  endforeach()
endif()
