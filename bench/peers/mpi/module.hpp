// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface between the module, which is linked with MPI, and the program that opens it, which is not.

#include <cstddef>

#include "beeline/core/status.hpp"

extern "C" {

/// The functions return nullptr on success and a message on failure.
struct BeelineMpiModule {
  /// Starts MPI, and returns this process's rank in MPI_COMM_WORLD and the size.
  const char* (*start)(int* rank, int* size);
  /// The first line of the library's version text.
  const char* (*version)();
  /// A collective of floats: a sum, or a movement from rank 0; `count` is the number of elements of a piece.
  const char* (*call)(beeline::Operation operation, const void* source, void* destination, std::size_t count);
  const char* (*barrier)();
  /// Blocking transfer of bytes between two ranks.
  const char* (*send)(const void* source, std::size_t bytes, int peer);
  const char* (*receive)(void* destination, std::size_t bytes, int peer);
  void (*stop)();
};

/// The module's only entry point.
const BeelineMpiModule* beeline_mpi_module();
}
