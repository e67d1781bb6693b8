# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DSOURCE=... -DFOLDER=... [-DOPTIONS=...] -DLAUNCHER=... -DEXAMPLE=... -DC_EXAMPLE=...
# -DGASPI_EXAMPLE=... -DREADME=... -P run.cmake: installs the library of a build into FOLDER/prefix, builds the consumer
# with that library, configured by README's command line, and runs it.
file(REMOVE_RECURSE ${FOLDER})
file(COPY ${SOURCE}/consumer DESTINATION ${FOLDER})  # outside the source tree: it can find only installed files
file(COPY ${EXAMPLE} ${C_EXAMPLE} ${GASPI_EXAMPLE} DESTINATION ${FOLDER}/consumer)

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

# Which builds check the arguments of device operations.
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

# The C interface and GASPI: by the CMake packages, and by pkg-config.
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/build/ring_c)
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/build/gaspi)
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/build/gaspi_by_variables)
# As a build that searches for GPI-2's files: the program finds the libraries where it was linked to them.
file(GLOB gpi2 ${FOLDER}/prefix/*/gpi2 ${FOLDER}/prefix/*/*/gpi2)
run(cc -std=c99 ${GASPI_EXAMPLE} -o ${FOLDER}/gaspi_by_files -I${gpi2}/include -L${gpi2}/lib64 -lGPI2
  -Wl,-rpath,${gpi2}/lib64)
run(${LAUNCHER} -n 2 --device cpu -- ${FOLDER}/gaspi_by_files)
find_program(pkg_config NAMES pkg-config)
if(NOT pkg_config)
  message("skipped: there is no pkg-config to try beeline_c.pc with")
  return()
endif()
file(GLOB folder ${FOLDER}/prefix/*/pkgconfig ${FOLDER}/prefix/*/*/pkgconfig)
file(GLOB library ${FOLDER}/prefix/*/libbeeline_c.so ${FOLDER}/prefix/*/*/libbeeline_c.so)
get_filename_component(library ${library} DIRECTORY)
function(run_by_pkg_config package source)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${pkg_config} --cflags --libs ${package}
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  run(cc -std=c99 ${source} -o ${FOLDER}/by_pkg_config ${flags})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library} ${FOLDER}/by_pkg_config)
endfunction()
run_by_pkg_config(beeline_c ${C_EXAMPLE})
run_by_pkg_config(beeline_gaspi ${GASPI_EXAMPLE})
run_by_pkg_config(GPI2 ${GASPI_EXAMPLE})
