// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NCCL beside Beeline, opened at run time: libnccl.so.2, or the file that BEELINE_NCCL names.

#include <exception>
#include <memory>
#include <string>

#include "collectives/vectors.hpp"

namespace beeline::bench::nccl {

class Communicator {
 public:
  virtual ~Communicator() = default;
  /// As `2.28.9`.
  [[nodiscard]] virtual std::string version() const = 0;
  /// Puts one call on the stream of a GPU: sums, or from and to rank 0. Throws internal with NCCL's own message.
  virtual void start(Operation operation, const VectorPair& vectors, Stream& stream) = 0;
  /// The same for a message to a peer, or from it.
  virtual void send(const void* source, std::size_t bytes, int peer, Stream& stream) = 0;
  virtual void receive(void* destination, std::size_t bytes, int peer, Stream& stream) = 0;
};

/// Makes the communicator of a run's cases when the first asks for it.
class Communicators {
 public:
  /// Collective. All ranks of the bench's world. Throws unavailable, on all ranks alike, where the library is absent
  /// or too old on one of them, or a rank has no GPU of its own.
  [[nodiscard]] std::shared_ptr<Communicator> get(Bench& bench);

 private:
  std::shared_ptr<Communicator> communicator_;
  std::exception_ptr failure_;  ///< of the first try
};

}  // namespace beeline::bench::nccl
