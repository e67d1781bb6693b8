// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Source and destination of messages, and the check that the received data equals the sent data.

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The random bytes that `rank` sends.
[[nodiscard]] std::vector<std::byte> random_message(std::uint64_t seed, int rank, std::uint64_t bytes);

/// Buffers for messages between ranks 0 and 1.
class MessageBuffers {
 public:
  /// Collective. Buffers in the symmetric heap.
  MessageBuffers(Bench& bench, std::uint64_t bytes);
  /// Buffers in other memory, of `bytes` each.
  MessageBuffers(Bench& bench, std::uint64_t bytes, std::shared_ptr<std::byte> source,
                 std::shared_ptr<std::byte> destination);

  [[nodiscard]] std::byte* source() const { return source_.get(); }
  [[nodiscard]] std::byte* destination() const { return destination_.get(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Writes random bytes to this rank's source, and to its destination bytes that all differ from the expected ones.
  void refresh(std::uint64_t seed);
  /// Whether the destination equals the peer's source, byte by byte.
  [[nodiscard]] bool arrived(std::uint64_t seed);

 private:
  Bench& bench_;
  std::uint64_t bytes_;
  std::shared_ptr<std::byte> source_, destination_;
};

enum class Receivers { both, first, second };

/// The verification of message methods: fresh data, one more `transfer`, comparison at the receivers.
[[nodiscard]] std::function<bool(std::uint64_t)> verify_messages(Bench& bench, std::shared_ptr<MessageBuffers> buffers,
                                                                 std::function<std::vector<double>(Rounds)> transfer,
                                                                 Receivers receivers);

/// A verified measurement of messages between ranks 0 and 1 by `time`. If both receive, the operation is `message`, and
/// the result is half of a round trip; if the second or the first receives, it is `put` or `get`, and the result is the
/// bandwidth.
[[nodiscard]] Measurement message_measurement(Bench& bench, const std::shared_ptr<MessageBuffers>& buffers,
                                              Receivers receivers, std::string method,
                                              std::function<std::vector<double>(Rounds)> time);

}  // namespace beeline::bench
