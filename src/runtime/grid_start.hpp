// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts of grids on a GPU.

#include "beeline/runtime/device.hpp"

namespace beeline {

struct GridShape {
  unsigned blocks, threads;
  void* stream;       ///< `cudaStream_t`
  bool starts_early;  ///< programmatic dependent launch
};
/// Starts a grid on `gpu`, which this thread uses (`use_gpu`). `launch_error` says whether it was started.
///   parameters  the addresses of the function's parameters
void start_grid(const KernelCode& kernel, int gpu, const GridShape& shape, void** parameters);

}  // namespace beeline
