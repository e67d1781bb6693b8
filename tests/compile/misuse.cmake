# SPDX-License-Identifier: Apache-2.0
# Programs that the compiler must refuse, each with the error text that its line `// expect:` gives.

set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Werror=unused-result
  -I${PROJECT_SOURCE_DIR}/include)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/misuse/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} expected REGEX "^// expect: ")
  string(REPLACE "// expect: " "" expected "${expected}")
  add_test(NAME misuse.${name} COMMAND ${compile} ${source})
  set_tests_properties(misuse.${name} PROPERTIES LABELS default)
  if(expected)
    set_tests_properties(misuse.${name} PROPERTIES PASS_REGULAR_EXPRESSION "error: [^\n]*${expected}")
  endif()
endforeach()
