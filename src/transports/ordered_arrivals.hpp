// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Restores the order of messages from one rank: UCX promises no order between messages that it carries by different
/// protocols, and a fetched payload arrives later than the messages after it.

#include <cstdint>
#include <map>
#include <vector>

#include "transports/message.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// A message that may have to wait for earlier ones.
struct Arrival {
  NetworkMessage message;
  std::vector<std::byte> payload;
  void* parcel = nullptr;  ///< identifies a payload that is to be fetched
  std::size_t parcel_bytes = 0;
  bool is_begun = false, is_there = false;  ///< state of the fetch
  bool is_held = false;                     ///< the destination is held meanwhile
  StagedBytes buffer = {};                  ///< receives the payload, unless it goes straight to its destination
};

/// The messages of one rank that have arrived, and which one is next.
class OrderedArrivals {
 public:
  [[nodiscard]] bool is_next(const NetworkMessage& message) const { return message.number == done_ + 1; }
  /// Whether a message may arrive now: it is not done, and no further ahead than its sender may send.
  [[nodiscard]] bool may_come(const NetworkMessage& message) const {
    return message.number > done_ && message.number - done_ <= most_ahead;
  }
  /// Stores a message. Returns false if it is already stored.
  [[nodiscard]] bool keep(Arrival arrival) { return kept_.emplace(arrival.message.number, std::move(arrival)).second; }
  /// The next message, if it has arrived; otherwise nullptr.
  [[nodiscard]] Arrival* next() {
    return kept_.empty() || kept_.begin()->first != done_ + 1 ? nullptr : &kept_.begin()->second;
  }
  /// Takes the next message, which must have arrived.
  [[nodiscard]] Arrival take_next() {
    Arrival next = std::move(kept_.begin()->second);
    kept_.erase(kept_.begin());
    return next;
  }
  [[nodiscard]] Arrival* find(std::uint64_t number) {
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : &found->second;
  }
  /// Calls `visit(arrival)` for stored messages from the next one on, until a number is missing or `visit` returns
  /// false.
  template <class Visit>
  void for_next(const Visit& visit) {
    std::uint64_t number = done_;
    for (auto& [kept, arrival] : kept_)
      if (kept != ++number || !visit(arrival)) return;
  }
  /// The next message is done.
  void end() { ++done_; }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  std::uint64_t done_ = 0;  ///< number of the last message that is done
  std::map<std::uint64_t, Arrival> kept_;
};

}  // namespace beeline
