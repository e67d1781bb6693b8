// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Transfers through a ring of buffers in host memory: the sender's device copies chunks to the buffers, the receiver's
/// device copies them from there. Source: seed 000 sections 3.2 and 4.4; seed 001, double buffering.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// A ring in the receiver's memory with the lengths of messages, and the two words that pace it: the number of chunks
/// published (at the receiver) and consumed (at the sender). If an engine carries operations to the peer, words in the
/// peer's memory are given by this rank's address of the same symmetric memory.
struct StagedRing {
  std::byte* buffers;      ///< [slots, chunk_bytes] host memory that both processes and their GPUs reach
  std::uint64_t* lengths;  ///< [slots] bytes of the message that begins in a slot
  std::uint64_t *published, *consumed;
  std::size_t chunk_bytes;
  std::uint32_t slots;
  const Context* carried_by = nullptr;  ///< context of CPU threads for stores by the engine; nullptr: plain stores
  std::uint32_t peer = no_peer;         ///< the rank at the other end, for stores by the engine
};

/// One side of a ring. Its chunks are started on the stream, then finished, in order. A message has at least one chunk,
/// which carries the length; the chunk of a message of 0 bytes is empty.
class StagedEnd {
 public:
  StagedEnd(Stream& stream, const StagedRing& ring);

  /// Begins a message of `bytes`; the previous message must have ended.
  void begin(std::size_t bytes);
  /// Chunks finished since the ring was made.
  [[nodiscard]] std::uint64_t finished() const { return finished_; }
  /// The value of `finished()` at which the current message ends.
  [[nodiscard]] std::uint64_t target() const { return target_; }
  [[nodiscard]] bool over() const { return finished_ == target_; }
  /// Time in nanoseconds that this side has waited for the other: a sender for a free buffer, a receiver for data.
  [[nodiscard]] std::uint64_t waited_ns() const { return waited_ns_; }

 protected:
  /// Starts chunks until `limit` chunks have been started, then counts the chunks whose copies have ended. Returns
  /// whether there were any.
  template <class Start>
  bool advance(std::uint64_t limit, Start start);
  [[nodiscard]] std::byte* buffer(std::uint64_t chunk) const {
    return ring_.buffers + chunk % ring_.slots * ring_.chunk_bytes;
  }
  [[nodiscard]] std::size_t chunk_size(std::size_t offset) const;
  /// Whether no chunk of the current message has been started.
  [[nodiscard]] bool waits_for_first() const { return !over() && started_ == first_; }
  /// The length that the message's first chunk carries.
  [[nodiscard]] std::uint64_t* first_length() const { return &ring_.lengths[first_ % ring_.slots]; }
  /// Sets one of the two words in the peer's memory, after the copies that have ended. A failure ends the caller's
  /// wait, since it aborts the world.
  void publish(std::uint64_t* word, std::uint64_t value) const;
  /// Ends a message none of whose chunks has been started.
  void abandon() { target_ = finished_; }

  Stream& stream_;
  StagedRing ring_;
  std::size_t bytes_ = 0;

 private:
  void note_wait(std::uint64_t limit);

  std::vector<std::unique_ptr<Event>> copied_;  ///< [slots]
  std::uint64_t waits_since_ = 0, waited_ns_ = 0;
  std::uint64_t first_ = 0, started_ = 0, finished_ = 0, target_ = 0;
};

/// The sending side. One thread drives it.
class StagedSender : public StagedEnd {
 public:
  using StagedEnd::StagedEnd;
  /// Makes progress without blocking. Call it until `over()`; then `source` may be reused.
  void progress(const std::byte* source);

 private:
  void store_length() const;
};

/// The receiving side. One thread drives it.
class StagedReceiver : public StagedEnd {
 public:
  using StagedEnd::StagedEnd;
  void begin(std::size_t bytes) {
    StagedEnd::begin(bytes);
    other_length_.reset();
  }
  /// Makes progress without blocking. Call it until `over()`; then the message is in `destination`. A message of
  /// another length than expected stays in the ring for the next `begin`.
  void progress(std::byte* destination);
  /// The length of the sender's message, if it is not the expected length.
  [[nodiscard]] std::optional<std::uint64_t> other_length() const { return other_length_; }

 private:
  std::optional<std::uint64_t> other_length_;
};

}  // namespace beeline
