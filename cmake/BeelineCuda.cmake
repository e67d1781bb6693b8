# SPDX-License-Identifier: Apache-2.0
# Finds what CUDA code needs: nvcc (optional), and libcu++'s headers (always: host code uses them too).
# Sets BEELINE_CUDA (whether nvcc compiles) and makes the target beeline_cccl.

include(CheckLanguage)
set(BEELINE_CUDA OFF)
if(NOT BEELINE_WITH_CUDA STREQUAL "OFF")
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES ${BEELINE_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(BEELINE_CUDA ON)
  elseif(BEELINE_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BEELINE_WITH_CUDA is ON, but no CUDA compiler was found: "
                        "put nvcc on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()

# libcu++ comes with the toolkit (include/cccl), or from PyPI's nvidia-cuda-cccl: set BEELINE_CCCL_DIR to its
# include/cccl where it is in another place than .venv.
set(BEELINE_CCCL_DIR "" CACHE PATH "Folder that holds libcu++'s cuda/atomic, where no CUDA toolkit does")
find_path(BEELINE_CCCL_INCLUDE cuda/atomic
  HINTS ${BEELINE_CCCL_DIR} ${CUDAToolkit_INCLUDE_DIRS} ${BEELINE_VENV_CCCL} PATH_SUFFIXES cccl NO_CACHE)
if(NOT BEELINE_CCCL_INCLUDE)
  message(FATAL_ERROR "libcu++ (cuda/atomic) was not found: run tools/setup, or install the CUDA "
                      "toolkit, or `pip install nvidia-cuda-cccl==13.0.85` and set BEELINE_CCCL_DIR to its "
                      "nvidia/cu13/include/cccl")
endif()
add_library(beeline_cccl INTERFACE)
target_include_directories(beeline_cccl SYSTEM INTERFACE ${BEELINE_CCCL_INCLUDE})
message(STATUS "beeline: CUDA ${BEELINE_CUDA}, libcu++ in ${BEELINE_CCCL_INCLUDE}")
