// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// UCX beside Beeline, called without it: a worker of its own on ranks 0 and 1, and an endpoint between them. The
/// library is the one that the world has opened, over the same transports.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "harness/bench.hpp"

namespace beeline::bench::ucx {

/// A place of messages that the receiver drops.
inline constexpr std::size_t sink = ~std::size_t{0};

/// Ranks 0 and 1 use it, a thread each. Every wait ends by the world's deadline: throws deadline.
class Pair {
 public:
  virtual ~Pair() = default;
  /// Puts bytes to a place in the peer's target. The source stays as it is until `flush` returns.
  virtual void put(const std::byte* source, std::size_t place, std::size_t bytes) = 0;
  /// Gets bytes from a place in the peer's target, and waits for them.
  virtual void get(std::byte* destination, std::size_t place, std::size_t bytes) = 0;
  /// Waits until all puts are in place at the peer, and all messages have been sent.
  virtual void flush() = 0;
  /// Sends an active message, whose bytes the peer copies to that place of its target.
  virtual void send(const std::byte* source, std::size_t place, std::size_t bytes) = 0;
  /// Waits until so many messages of the peer have been copied, since the pair was made.
  virtual void receive(std::uint64_t messages) = 0;
  [[nodiscard]] virtual std::uint64_t received() const = 0;
  /// Waits until all that both have sent is over: what one waits for needs the other's progress. Both call it.
  virtual void settle() = 0;
  /// Waits until the word, in this rank's target, has a value that the peer puts, or a greater one that it puts later.
  virtual void await(const std::uint64_t& word, std::uint64_t value) = 0;
};

/// Collective. `target` is what the peer puts to; it outlives the pair. Throws unavailable, on all ranks alike, where
/// the world has opened no UCX; other ranks than 0 and 1 get a pair that does nothing.
[[nodiscard]] std::unique_ptr<Pair> make_pair(Bench& bench, std::span<std::byte> target);

}  // namespace beeline::bench::ucx
