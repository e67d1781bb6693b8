// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Source and destination of messages, and the check that what arrives is what was sent.

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The random bytes that `rank` sends.
[[nodiscard]] std::vector<std::byte> random_message(std::uint64_t seed, int rank, std::uint64_t bytes);

/// Symmetric buffers for messages between ranks 0 and 1.
class MessageBuffers {
 public:
  /// Collective.
  MessageBuffers(Bench& bench, std::uint64_t bytes);

  [[nodiscard]] std::byte* source() const { return source_.data(); }
  [[nodiscard]] std::byte* destination() const { return destination_.data(); }
  [[nodiscard]] std::uint64_t bytes() const { return source_.bytes(); }

  /// Writes random bytes to this rank's source, and to its destination what differs in every byte from what will come.
  void refresh(std::uint64_t seed);
  /// Whether the destination holds the peer's source, byte by byte.
  [[nodiscard]] bool arrived(std::uint64_t seed);

 private:
  Bench& bench_;
  SymmetricArray<std::byte> source_, destination_;
};

enum class Receivers { both, first, second };

/// The verification of message methods: fresh data, one more transfer by `transfer`, comparison at the receivers.
[[nodiscard]] std::function<bool(std::uint64_t)> verify_messages(Bench& bench, std::shared_ptr<MessageBuffers> buffers,
                                                                 std::function<std::vector<double>(Rounds)> transfer,
                                                                 Receivers receivers);

}  // namespace beeline::bench
