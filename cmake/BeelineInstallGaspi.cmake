# SPDX-License-Identifier: Apache-2.0
# Installs the GASPI front end: the component `gaspi` of the CMake package; pkg-config's beeline_gaspi; the package
# GPI2, so that find_package(GPI2) works; and a folder as GPI-2 installs, for builds that search include/GASPI.h and
# lib64/libGPI2.so below GPI2_ROOT.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gaspi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
# The library finds beeline_c beside itself, also when a program is linked.
set_target_properties(beeline_gaspi PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS beeline_gaspi EXPORT beelineGaspiTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT beelineGaspiTargets NAMESPACE beeline:: DESTINATION ${package_folder} COMPONENT library)

set(gpi2_version 1.6.0)  # whose names the headers have
set(gpi2_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/GPI2)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/GPI2Config.cmake.in ${PROJECT_BINARY_DIR}/GPI2Config.cmake
  INSTALL_DESTINATION ${gpi2_package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GPI2ConfigVersion.cmake VERSION ${gpi2_version}
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/GPI2Config.cmake ${PROJECT_BINARY_DIR}/GPI2ConfigVersion.cmake
  DESTINATION ${gpi2_package_folder} COMPONENT library)

foreach(name beeline_gaspi GPI2)
  set(pc_version ${PROJECT_VERSION})
  if(name STREQUAL "GPI2")
    set(pc_version ${gpi2_version})
  endif()
  set(pc_name ${name})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/beeline_gaspi.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()

# The folder has links only. They are made beside the build and are relative, so they are valid once installed.
set(folder ${PROJECT_BINARY_DIR}/gpi2)
file(MAKE_DIRECTORY ${folder}/lib64)
file(RELATIVE_PATH to_include /${CMAKE_INSTALL_LIBDIR}/gpi2 /${CMAKE_INSTALL_INCLUDEDIR}/gaspi)
file(CREATE_LINK ${to_include} ${folder}/include SYMBOLIC)
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
foreach(library beeline_gaspi beeline_c)
  file(CREATE_LINK ../../lib${library}.so.${soversion} ${folder}/lib64/lib${library}.so.${soversion} SYMBOLIC)
endforeach()
file(CREATE_LINK ../../libbeeline_gaspi.so ${folder}/lib64/libGPI2.so SYMBOLIC)
install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
