# SPDX-License-Identifier: Apache-2.0
# What cmake --install puts where. Components: library (headers, library, CMake package), programs (for the wheel).
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/beeline)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/beeline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(TARGETS beeline beeline_base EXPORT beelineTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
if(BEELINE_BUILD_C)
  install(TARGETS beeline_c EXPORT beelineCTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(EXPORT beelineCTargets NAMESPACE beeline:: DESTINATION ${package_folder} COMPONENT library)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/beeline_c.pc.in ${PROJECT_BINARY_DIR}/beeline_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/beeline_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
  include(BeelineInstallGaspi)
endif()
install(EXPORT beelineTargets NAMESPACE beeline:: DESTINATION ${package_folder} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/beelineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/beelineConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/beelineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/beelineConfig.cmake ${PROJECT_BINARY_DIR}/beelineConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/BeelinePortable.cmake
  DESTINATION ${package_folder} COMPONENT library)

set(programs beeline-launch beeline-info)
if(BEELINE_BUILD_BENCH)
  list(APPEND programs beeline-bench beeline-bench-collectives)
endif()
if(BEELINE_BUILD_APPS)
  list(APPEND programs breadth-first fft global-reduction himeno jacobi merge-sort random-access ring-reduction
    spin-glass stencil tree-search)
  if(BEELINE_CUDA)
    list(APPEND programs himeno-device-launched)
  endif()
endif()
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
