# SPDX-License-Identifier: Apache-2.0
# beeline_commit: the target with beeline_commit.hpp, from which records take the commit that was built. Set
# BEELINE_COMMIT if the sources came without their repository.
set(BEELINE_COMMIT "" CACHE STRING
  "Commit that records name, with -dirty behind it where files differ; empty: git says it")
set(folder ${PROJECT_BINARY_DIR}/commit)
add_custom_target(beeline_commit_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DCOMMIT=${BEELINE_COMMIT}
    -DHEADER=${folder}/beeline_commit.hpp -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake
  BYPRODUCTS ${folder}/beeline_commit.hpp VERBATIM)
add_library(beeline_commit INTERFACE)
target_include_directories(beeline_commit INTERFACE ${folder})
add_dependencies(beeline_commit beeline_commit_header)
