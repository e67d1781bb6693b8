// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// MPI beside Beeline, where `mpirun` started the ranks, in memory of the host.

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
  /// Blocking. Host memory.
  virtual void send(const void* source, std::size_t bytes, int peer) = 0;
  virtual void receive(void* destination, std::size_t bytes, int peer) = 0;
};

/// Collective. MPI_COMM_WORLD; MPI starts at the first call. Throws unavailable, on all ranks alike, where ranks were
/// not started by mpirun, the build found no MPI, or MPI has no such elements.
[[nodiscard]] std::shared_ptr<Communicator> communicator(Bench& bench);

/// Collective. Ends what `communicator` began; does nothing where it did not.
void stop();

}  // namespace beeline::bench::mpi
