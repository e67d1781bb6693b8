// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the module that is linked with MPI offers to the program that opens it, which is not.

#include <cstddef>

#include "beeline/core/status.hpp"

extern "C" {

/// Failures are texts, success is nullptr.
struct BeelineMpiModule {
  /// Starts MPI, and gives this process's place in MPI_COMM_WORLD.
  const char* (*start)(int* rank, int* size);
  /// The library's first line about itself.
  const char* (*version)();
  /// A collective of floats: sums, or from rank 0; `count` elements of a piece.
  const char* (*call)(beeline::Operation operation, const void* source, void* destination, std::size_t count);
  const char* (*barrier)();
  /// Blocking, between two ranks; bytes.
  const char* (*send)(const void* source, std::size_t bytes, int peer);
  const char* (*receive)(void* destination, std::size_t bytes, int peer);
  void (*stop)();
};

/// The module's one entry.
const BeelineMpiModule* beeline_mpi_module();
}
