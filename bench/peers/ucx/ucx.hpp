// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// UCX for comparison, called without Beeline: ranks 0 and 1 have their own workers, with an endpoint between them. The
/// library is the one that the world has opened, with the same transports; in a world over sockets, the system's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "harness/bench.hpp"

namespace beeline::bench::ucx {

/// An offset that makes the receiver drop the message.
inline constexpr std::size_t sink = ~std::size_t{0};

/// Used by ranks 0 and 1, with one thread each. Every wait ends at the world's deadline, and then throws deadline.
class Pair {
 public:
  virtual ~Pair() = default;
  /// Puts bytes to an offset in the peer's target. The source must not change until `flush` returns.
  virtual void put(const std::byte* source, std::size_t place, std::size_t bytes) = 0;
  /// Gets bytes from an offset in the peer's target, and waits for them.
  virtual void get(std::byte* destination, std::size_t place, std::size_t bytes) = 0;
  /// Waits until all puts have arrived at the peer, and all messages have been sent.
  virtual void flush() = 0;
  /// Sends an active message, whose bytes the peer copies to the offset in its target.
  virtual void send(const std::byte* source, std::size_t place, std::size_t bytes) = 0;
  /// Waits until `messages` messages of the peer have been copied since the pair was made.
  virtual void receive(std::uint64_t messages) = 0;
  [[nodiscard]] virtual std::uint64_t received() const = 0;
  /// Waits until all operations of both ranks are complete: each rank's operations may need the other's progress. Both
  /// call it.
  virtual void settle() = 0;
  /// Waits until the word in this rank's target, which the peer puts, is at least `value`.
  virtual void await(const std::uint64_t& word, std::uint64_t value) = 0;
};

/// Collective. The peer puts to `target`, which must outlive the pair. Throws unavailable on all ranks if there is no
/// UCX, or the world is encrypted; ranks other than 0 and 1 get a pair that does nothing.
[[nodiscard]] std::unique_ptr<Pair> make_pair(Bench& bench, std::span<std::byte> target);

}  // namespace beeline::bench::ucx
