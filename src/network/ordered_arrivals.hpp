// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The order of messages from one rank: UCX promises none between messages that it carries by different protocols, and
/// a payload that is fetched comes later than the messages behind it.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "network/message.hpp"

namespace beeline {

/// A message that may have to wait for those before it.
struct Arrival {
  NetworkMessage message;
  std::vector<std::byte> payload;
  void* parcel = nullptr;  ///< of a payload that is to be fetched
  std::size_t parcel_bytes = 0;
};

/// Of the messages of one rank, which is next.
class OrderedArrivals {
 public:
  /// Whether the message is the next one, and none is being done.
  [[nodiscard]] bool is_next(const NetworkMessage& message) const { return !busy_ && message.number == done_ + 1; }
  /// Whether the message may come now: it is neither done nor further ahead than its sender may go.
  [[nodiscard]] bool may_come(const NetworkMessage& message) const {
    return message.number > done_ && message.number - done_ <= most_ahead;
  }
  /// Keeps a message that is not next. False: it is kept already.
  [[nodiscard]] bool keep(Arrival arrival) { return kept_.emplace(arrival.message.number, std::move(arrival)).second; }
  /// The next message, where it is kept.
  [[nodiscard]] std::optional<Arrival> take_next() {
    if (busy_ || kept_.empty() || kept_.begin()->first != done_ + 1) return std::nullopt;
    std::optional<Arrival> next(std::move(kept_.begin()->second));
    kept_.erase(kept_.begin());
    return next;
  }
  /// The next message is being done: those behind it wait.
  void begin() { busy_ = true; }
  /// It is done.
  void end() { busy_ = false, ++done_; }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  std::uint64_t done_ = 0;  ///< number of the last message that is done
  bool busy_ = false;
  std::map<std::uint64_t, Arrival> kept_;
};

}  // namespace beeline
