# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DSOURCE=... -DFOLDER=... [-DOPTIONS=...] -DLAUNCHER=... -DEXAMPLE=... -P run.cmake: installs the
# library of a build into FOLDER/prefix, and builds and runs the consumer against it there.
file(REMOVE_RECURSE ${FOLDER})
file(COPY ${SOURCE}/consumer DESTINATION ${FOLDER})  # outside the source tree: it finds what is installed, or nothing
file(COPY ${EXAMPLE} DESTINATION ${FOLDER}/consumer)

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix --component library)
run(${CMAKE_COMMAND} -S consumer -B build -G Ninja -DCMAKE_PREFIX_PATH=${FOLDER}/prefix ${OPTIONS})
run(${CMAKE_COMMAND} --build build)
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/build/ring)
