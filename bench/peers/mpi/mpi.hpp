// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// MPI in host memory, for comparison, if `mpirun` started the ranks.

#include <memory>
#include <string>

#include "collectives/operation.hpp"

namespace beeline::bench::mpi {

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::string version() const = 0;
  /// Blocking. Vectors in host memory. Throws internal with MPI's own message.
  virtual void call(Operation operation, const VectorPair& vectors) = 0;
  virtual void barrier() = 0;
  /// Blocking, in host memory.
  virtual void send(const void* source, std::size_t bytes, int peer) = 0;
  virtual void receive(void* destination, std::size_t bytes, int peer) = 0;
};

/// Collective. The communicator of MPI_COMM_WORLD; the first call starts MPI. Throws unavailable on all ranks if the
/// ranks were not started by mpirun, the build found no MPI, or MPI lacks the element type.
[[nodiscard]] std::shared_ptr<Communicator> communicator(Bench& bench);

/// Collective. Ends MPI if `communicator` started it.
void stop();

}  // namespace beeline::bench::mpi
