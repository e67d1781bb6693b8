// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The order of messages from one rank: UCX promises none between messages that it carries by different protocols, and
/// a payload that is fetched comes later than the messages behind it.

#include <cstdint>
#include <map>
#include <vector>

#include "transports/message.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// A message that may have to wait for those before it.
struct Arrival {
  NetworkMessage message;
  std::vector<std::byte> payload;
  void* parcel = nullptr;  ///< of a payload that is to be fetched
  std::size_t parcel_bytes = 0;
  bool is_begun = false, is_there = false;  ///< the fetch
  bool is_held = false;                     ///< its place, meanwhile
  StagedBytes buffer = {};                  ///< where to, unless straight to its place
};

/// Of the messages of one rank, which is next.
class OrderedArrivals {
 public:
  [[nodiscard]] bool is_next(const NetworkMessage& message) const { return message.number == done_ + 1; }
  /// Whether the message may come now: it is neither done nor further ahead than its sender may go.
  [[nodiscard]] bool may_come(const NetworkMessage& message) const {
    return message.number > done_ && message.number - done_ <= most_ahead;
  }
  /// Keeps a message. False: it is kept already.
  [[nodiscard]] bool keep(Arrival arrival) { return kept_.emplace(arrival.message.number, std::move(arrival)).second; }
  /// The next message, where it is kept; otherwise nullptr.
  [[nodiscard]] Arrival* next() {
    return kept_.empty() || kept_.begin()->first != done_ + 1 ? nullptr : &kept_.begin()->second;
  }
  /// The same, which is not kept any more.
  [[nodiscard]] Arrival take_next() {
    Arrival next = std::move(kept_.begin()->second);
    kept_.erase(kept_.begin());
    return next;
  }
  [[nodiscard]] Arrival* find(std::uint64_t number) {
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : &found->second;
  }
  /// Calls `visit(arrival)` for the messages that are kept, from the next one on, until one is missing or `visit` says
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
