// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One shot: every member sends its vector to all members, and combines all vectors. This takes one step, and has the
/// lowest latency. In packets only. Source: seed 000, 6.8 (all-gather).

#include "beeline/collectives/impl/protocol/packet_round.hpp"

namespace beeline::detail {

struct OneShot {
  static constexpr bool by_parts = false;

  /// Largest number of units of a vector in a round.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t most_units(std::uint32_t area_units, std::uint32_t) {
    return area_units;
  }

  template <class T, class Round>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE static Status run(
      const Round& round, const typename Round::template Vector<T>& destination,
      const typename Round::template Vector<const T>& source, Reduction reduction) {
    const std::uint32_t units = UnitParts<Round::unit_words>::units_of(source.words()),
                        sent = source.whole_words() / Round::unit_words,
                        received = destination.whole_words() / Round::unit_words;
    if (round.is_new())
      round.send_all(units, sent,
                     [&](const auto& place, auto whole) { return source.template load<whole()>(0, place); });
    return combine_units<T>(round, VectorPart<typename Round::template Vector<const T>>{source, 0, units},
                            sent < received ? sent : received, reduction,
                            [&](const auto& place, auto whole, const auto& result, bool) {
                              if (place.exists) destination.template store<whole()>(0, place, result);
                            });
  }
};
template <>
struct PacketSchedule<Schedule::one_shot> {
  using type = OneShot;
};

}  // namespace beeline::detail
