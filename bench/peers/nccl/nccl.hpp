// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NCCL for comparison, opened at run time: libnccl.so.2, or the file named by BEELINE_NCCL.

#include <exception>
#include <memory>
#include <string>

#include "collectives/vectors.hpp"

namespace beeline::bench::nccl {

class Communicator {
 public:
  virtual ~Communicator() = default;
  /// The version, as `2.28.9`.
  [[nodiscard]] virtual std::string version() const = 0;
  /// Enqueues one call on the stream of a GPU: a sum, or a movement from or to rank 0. Throws internal with NCCL's own
  /// message.
  virtual void start(Operation operation, const VectorPair& vectors, Stream& stream) = 0;
  /// Enqueues a message to a peer, or from a peer.
  virtual void send(const void* source, std::size_t bytes, int peer, Stream& stream) = 0;
  virtual void receive(void* destination, std::size_t bytes, int peer, Stream& stream) = 0;
};

/// Makes the communicator of a run's cases when the first case requests it.
class Communicators {
 public:
  /// Collective. The communicator of all ranks of the bench's world. Throws unavailable on all ranks if the library is
  /// absent or too old on one of them, or a rank shares its GPU or has none.
  [[nodiscard]] std::shared_ptr<Communicator> get(Bench& bench);

 private:
  std::shared_ptr<Communicator> communicator_;
  std::exception_ptr failure_;  ///< of the first attempt
};

}  // namespace beeline::bench::nccl
