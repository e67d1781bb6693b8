// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Transfers through a ring of host-memory buffers: the sender's device copies chunks out, the receiver's copies them
/// in. Source: seed 000 sections 3.2 and 4.4; seed 001, double buffering.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// A ring at the receiver, and the two words that pace it: chunks published (at the receiver) and consumed (at the
/// sender).
struct StagedRing {
  std::byte* buffers;  ///< [slots, chunk_bytes] host memory that both processes and their GPUs reach
  std::uint64_t *published, *consumed;
  std::size_t chunk_bytes;
  std::uint32_t slots;
};

/// Chunks on one side of a ring: started on the stream, then finished, in order.
class StagedEnd {
 public:
  StagedEnd(Stream& stream, const StagedRing& ring);

  /// Begins a message of `bytes`; the previous one is over.
  void begin(std::size_t bytes);
  /// Begins a message, unless it is the one that an interrupted call has begun. Throws invalid_argument while another
  /// is to be continued.
  void begin_or_continue(const void* memory, std::size_t bytes);
  /// The call that began the message is over, with all that it does besides.
  void end_call() { is_in_call_ = false; }
  /// Chunks finished since the ring was made.
  [[nodiscard]] std::uint64_t finished() const { return finished_; }
  /// Chunks finished when the current message is over.
  [[nodiscard]] std::uint64_t target() const { return target_; }
  [[nodiscard]] bool over() const { return finished_ == target_; }

 protected:
  /// Starts chunks while fewer than `limit` have been, then counts those whose copies are done. True if any was.
  template <class Start>
  bool advance(std::uint64_t limit, Start start);
  [[nodiscard]] std::byte* buffer(std::uint64_t chunk) const {
    return ring_.buffers + chunk % ring_.slots * ring_.chunk_bytes;
  }
  [[nodiscard]] std::size_t chunk_size(std::size_t offset) const;

  Stream& stream_;
  StagedRing ring_;
  std::size_t bytes_ = 0;

 private:
  std::vector<std::unique_ptr<Event>> copied_;  ///< [slots]
  std::uint64_t first_ = 0, started_ = 0, finished_ = 0, target_ = 0;
  const void* memory_ = nullptr;  ///< of the message, as `begin_or_continue` was told
  bool is_in_call_ = false;
};

/// The sending side. One thread drives it.
class StagedSender : public StagedEnd {
 public:
  using StagedEnd::StagedEnd;
  /// Does what can be done now; call until `over()`. `source` may be reused then.
  void progress(const std::byte* source);
};

/// The receiving side. One thread drives it.
class StagedReceiver : public StagedEnd {
 public:
  using StagedEnd::StagedEnd;
  /// Does what can be done now; call until `over()`. The message is in `destination` then.
  void progress(std::byte* destination);
};

}  // namespace beeline
