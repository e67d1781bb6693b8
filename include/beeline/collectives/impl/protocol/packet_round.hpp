// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of a protocol, LL (ll.hpp) or LL128 (ll128.hpp), for schedules in packets: a round in which members
/// send each other units that carry a flag of their arrival.
///
/// A *unit* arrives as a whole: a word of 8 bytes, moved by one thread, or a line of 15 words, moved by eight threads.
/// A *place* is a thread's part of the unit `place.unit`; if `place.exists` is false, the thread only takes part in
/// operations of its warp. If `whole` is true_type, the place exists, and consists of whole aligned words in all
/// vectors. Every thread of the group calls these functions with the same arguments.
///
///   PacketRound(session, timeout, is_new, to_itself)
///     `is_new`: nothing of the round has been sent yet. `to_itself`: the rank also sends to itself, so that a call
///     that continues after a time-out finds there the data that it may have overwritten in its vectors.
///   serves(session), area_units(session)       whether the group can send such units; units of a member's area
///   half()                                     the first unit of an area's second half
///   unit_words, Value, Vector<T>               words of a unit; a thread's words of a unit; elements as units
///   any_pieces, frequent_members, sends_own_part  see ll.hpp
///   for_each(units, whole, visit)              visit(place, whole) for each unit, until a call does not return ok
///   send_all(units, whole, load)               sends units to all members: load(place, whole)
///   send_on<whole>(place, at, value)           sends unit `at` + place.unit to all members
///   send_on_to, receive_from                   LL128 only: sends to some members, receives from one
///   greet(peer), hear(peer)                    LL only: send, receive a unit without data
///   send_parts(parts, whole)                   sends each member its part
///   send_pieces(parts, whole)                  as send_parts, but threads may move different words in
///                                              each call
///   combine<T>(place, reduction, own, result)  combines a unit of all members, in the order of ranks; `own`: this
///                                              rank's unit, if the rank does not send to itself
///   receive_parts(at, parts, whole)            stores the units of all members, from unit `at` on, into the parts
///   receive_pieces(parts, whole)               as receive_parts, from unit 0 on, of all other members
///
/// `parts` are the data to, or from, each member: `of(peer)` is a `VectorPart`, and no part is longer than `most()`.
/// `whole`: number of units at the start of every part that are whole.

#include "beeline/collectives/impl/words.hpp"

namespace beeline::detail {

template <class Protocol, class Group, std::uint32_t members = 0>
class PacketRound;

/// Whether members also send a word to members that get no data from them in a round, as GPUs do. A member that has
/// ended such a round has received a word of every other member. So packets need not be acknowledged, which would take
/// a fence, and a wait in the next round. On CPUs a member of a broadcast or of a gather need not wait for members
/// without data.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool all_speak(const Context& ctx) {
  return executor == DeviceKind::gpu && !ctx.mixed;
}

/// The code of a protocol and of a schedule that the registry's rows name. Schedules specialise `PacketSchedule`.
template <Protocol protocol>
using ProtocolOf = std::conditional_t<protocol == Protocol::ll128, LL128, LL>;
template <Schedule schedule>
struct PacketSchedule;
template <Schedule schedule>
using ScheduleOf = typename PacketSchedule<schedule>::type;

/// The units of a vector from word `first` on.
template <class Vector>
struct VectorPart {
  Vector vector;
  std::uint32_t first, units;

  template <bool whole, class Place>
  [[nodiscard]] BEELINE_HOST_DEVICE auto load(const Place& place) const {
    return vector.template load<whole>(first, place);
  }
  template <bool whole, class Place, class Value>
  BEELINE_HOST_DEVICE void store(const Place& place, const Value& value) const {
    vector.template store<whole>(first, place, value);
  }
};

/// Division of a round's words into the members' parts, which consist of whole units, except the last.
template <std::uint32_t unit_words>
class UnitParts {
 public:
  BEELINE_HOST_DEVICE UnitParts(std::uint32_t words, std::uint32_t members)
      : words_(words), members_(members), part_(units_of((words + members - 1) / members) * unit_words) {}

  /// The first word of a member's part.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t first(std::uint32_t member) const { return member * part_; }
  /// Units of a member's part. No part has more than the first.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t units(std::uint32_t member) const {
    return units_of(words_from(member, words_));
  }
  /// Number of units of every part that are within the vector's first `words`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_units(std::uint32_t words) const {
    return words_from(members_ - 1, words) / unit_words;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t units_of(std::uint32_t words) {
    return (words + unit_words - 1) / unit_words;
  }

 private:
  /// Number of the vector's first `words` that belong to a member.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words_from(std::uint32_t member, std::uint32_t words) const {
    if (first(member) >= words) return 0;
    const std::uint32_t rest = words - first(member);
    return rest < part_ ? rest : part_;
  }
  std::uint32_t words_, members_, part_;
};

/// A vector's parts.
template <class Vector, std::uint32_t unit_words>
struct CutVector {
  Vector vector;
  UnitParts<unit_words> cut;

  [[nodiscard]] BEELINE_HOST_DEVICE VectorPart<Vector> of(std::uint32_t member) const {
    return {vector, cut.first(member), cut.units(member)};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t most() const { return cut.units(0); }
  /// Number of units that are whole in each part.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_units() const { return cut.whole_units(vector.whole_words()); }
};

/// Combines the units that all members send to this member, as they arrive. `mine`: this member's own units.
///   take  called with a place, `whole`, the result, and whether this member does not send the result to itself
template <class T, class Round, class Vector, class Take>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status combine_units(const Round& round,
                                                                      const VectorPart<Vector>& mine,
                                                                      std::uint32_t whole_units, Reduction reduction,
                                                                      const Take& take) {
  return round.for_each(mine.units, whole_units, [&](const auto& place, auto whole) {
    typename Round::Value own{}, result{};
    const bool is_own = place.exists && !round.sends_to_itself();
    if (is_own) own = mine.template load<whole()>(place);
    const Status status = round.template combine<T>(place, reduction, own, result);
    if (status == Status::ok) take(place, whole, result, is_own);
    return status;
  });
}

}  // namespace beeline::detail
