# SPDX-License-Identifier: Apache-2.0
# Compiles each public header in a source file of its own as C++. With nvcc, the header that includes all others and the
# one that launches are also compiled as CUDA: nvcc takes 2 s for each. impl/ is not public. GASPI's headers are
# compiled as C++ and as C99.

file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/beeline/*.hpp)
list(FILTER headers EXCLUDE REGEX "/impl/")

set(languages cpp)
if(BEELINE_CUDA)
  list(APPEND languages cu)
endif()
foreach(language IN LISTS languages)
  set(sources)
  set(checked ${headers})
  if(language STREQUAL "cu")
    list(FILTER checked INCLUDE REGEX "beeline/beeline.hpp|host/launch.hpp")
  endif()
  foreach(header IN LISTS checked)
    string(REGEX REPLACE "[/.]" "_" name ${header})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.${language})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(header_check_${language} OBJECT ${sources})
  add_dependencies(default_tests header_check_${language})
  target_link_libraries(header_check_${language} PRIVATE beeline_base beeline_options)
  target_compile_options(header_check_${language} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Werror;-O0>")
endforeach()

# One architecture finds as many errors as all of them, and PTX as many as machine code.
if(BEELINE_CUDA)
  list(GET BEELINE_CUDA_ARCHITECTURES 0 first_architecture)
  set_target_properties(header_check_cu PROPERTIES
    CUDA_ARCHITECTURES ${first_architecture} CUDA_PTX_COMPILATION ON)
endif()

file(GLOB gaspi_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/gaspi/*.h)
set(checks)
foreach(header IN LISTS gaspi_headers)
  foreach(standard c99 c++20)
    string(REGEX REPLACE "[0-9]" "" language ${standard})
    cmake_path(GET header STEM name)
    set(check ${CMAKE_CURRENT_BINARY_DIR}/${name}.${standard}.checked)
    add_custom_command(OUTPUT ${check} DEPENDS ${gaspi_headers} VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER} -x ${language} -std=${standard} -pedantic -Wall -Wextra -Werror -fsyntax-only
        -include ${header} /dev/null
      COMMAND ${CMAKE_COMMAND} -E touch ${check})
    list(APPEND checks ${check})
  endforeach()
endforeach()
add_custom_target(header_check_gaspi DEPENDS ${checks})
add_dependencies(default_tests header_check_gaspi)
