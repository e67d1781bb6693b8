# SPDX-License-Identifier: Apache-2.0
# Finds nvcc, which is optional. Sets BEELINE_CUDA: whether nvcc compiles.

include(CheckLanguage)
set(BEELINE_CUDA OFF)
if(NOT BEELINE_WITH_CUDA STREQUAL "OFF")
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES ${BEELINE_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old: CUDA 12.8 or newer is needed. Put a newer "
                          "nvcc on PATH, or build without CUDA: -DBEELINE_WITH_CUDA=OFF")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(BEELINE_CUDA ON)
  elseif(BEELINE_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_CUDA is ON, but no CUDA compiler was found: "
                        "put nvcc on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()
message(STATUS "beeline: CUDA ${BEELINE_CUDA}")
