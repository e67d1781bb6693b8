# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DSOURCE=... -DFOLDER=... [-DOPTIONS=...] -DLAUNCHER=... -DEXAMPLE=... -DREADME=... -P run.cmake:
# installs the library of a build into FOLDER/prefix, and builds the consumer against it there, configured by README's
# command line, and runs it.
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
file(STRINGS ${README} line REGEX "^cmake -B build ")
string(REGEX REPLACE "^cmake (.*) && cmake --build build$" "\\1" arguments "${line}")
string(REPLACE "=DIR" "=${FOLDER}/prefix" arguments "${arguments}")
separate_arguments(arguments)
run(${CMAKE_COMMAND} -S consumer ${arguments} -G Ninja ${OPTIONS})
file(STRINGS ${FOLDER}/build/CMakeCache.txt build_type REGEX "^CMAKE_BUILD_TYPE:")
if(NOT build_type MATCHES "=Release$")
  message(FATAL_ERROR "README.md's command line builds without optimization: ${line}")
endif()
run(${CMAKE_COMMAND} --build build)

# Which builds check what callers of device operations pass.
set(prefix -DCMAKE_PREFIX_PATH=${FOLDER}/prefix)
run(${CMAKE_COMMAND} -S consumer -B typeless -G Ninja ${prefix} ${OPTIONS})
run(${CMAKE_COMMAND} --build typeless --target calls_1)
set(types Debug 1 Release 0 RelWithDebInfo 0)
run(${CMAKE_COMMAND} -S consumer -B typed -G "Ninja Multi-Config" ${prefix} ${OPTIONS})
while(types)
  list(POP_FRONT types type checked)
  run(${CMAKE_COMMAND} --build typed --config ${type} --target calls_${checked})
endwhile()
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/build/ring)
