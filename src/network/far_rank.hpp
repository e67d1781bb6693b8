// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What an engine knows of a rank on another node.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "network/memory_keys.hpp"
#include "network/ordered_arrivals.hpp"

namespace beeline {

/// A put by key that is under way.
struct KeyedPut {
  NetworkMessage message;  ///< goes when the data are in place
  KeyOffer key;
};

struct FarRank {
  bool is_far = false;  ///< on another node; nothing below is used otherwise
  bool has_greeted = false;
  bool is_gone = false;                                 ///< lost, and the world knows: commands to it count as done
  std::uint64_t sent = 0;                               ///< numbered messages to it
  std::uint64_t acknowledged = 0;                       ///< of these, those that it has done
  std::uint64_t confirmed = 0;                          ///< of these, those whose refusals, if any, have come
  std::uint64_t refusals_told = 0, refusals_taken = 0;  ///< that it has sent, and that have come
  std::uint64_t unanswered = 0;                         ///< answers of its that this rank waits for
  std::uint64_t told = 0;                               ///< numbered messages of its that it knows to be done
  std::uint64_t awaited = 0;              ///< of these, number of the last whose acknowledgement it wants at once
  std::uint64_t untold_since_ns = 0;      ///< since when some have been done that it does not know of; 0: none
  std::uint64_t last_deferred = 0;        ///< number of the last message to it whose acknowledgement may wait
  std::uint64_t asked = 0;                ///< number up to which it has been asked for acknowledgements
  bool is_waited_for = false;             ///< so were messages to it, after the last: the next is acknowledged at once
  std::uint64_t refusals = 0;             ///< of its commands
  std::set<std::uint32_t> refused_rings;  ///< its rings of which a command was refused: so are all later ones
  OrderedArrivals arrivals;
  std::uint64_t under_way = 0;                   ///< of the messages that have arrived: the device still does them
  std::uint64_t in_place = 0;                    ///< number up to which nothing is
  bool has_keys = false;                         ///< puts to it may go by keys
  std::string transports;                        ///< of the connection, for people
  FarKeys keys;                                  ///< of its memory
  Footprints footprints;                         ///< of messages to it, where it has keys
  std::map<std::uint64_t, KeyedPut> keyed_puts;  ///< by number
  std::string lost;                              ///< why nothing goes there any more; empty: all is well
  std::uint64_t lost_at_ns = 0;                  ///< 0: nothing is to be told

  [[nodiscard]] bool is_lost() const { return !lost.empty(); }
  /// Numbered messages that are done, or refused, as this rank knows.
  [[nodiscard]] std::uint64_t confirm() {
    if (refusals_taken == refusals_told) confirmed = acknowledged;
    return confirmed;
  }
  /// Whether a further command may be under way to it. What goes to a rank that is lost is dropped.
  [[nodiscard]] bool has_room() const {
    return is_lost() || (sent - acknowledged < most_under_way && unanswered < most_under_way);
  }
};

}  // namespace beeline
