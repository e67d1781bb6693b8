# SPDX-License-Identifier: Apache-2.0
# Compiles one source for GPUs and CPUs. Part of the installed package, too.

# CMake 3.25.1 (Debian 12) does not know this option of nvcc. Set after CUDA has been enabled.
if(CMAKE_CUDA_COMPILER AND NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

# beeline_portable_sources(a.cpp ...): sources with kernels. nvcc compiles them if the library has CUDA, otherwise the
# C++ compiler.
function(beeline_portable_sources)
  if(BEELINE_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()
