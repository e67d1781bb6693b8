// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce in packets: vectors in any memory, no barrier, no fence; by a schedule (OneShot, TwoShot) in a protocol.

#include "beeline/collectives/impl/one_shot_on_host.hpp"
#include "beeline/collectives/impl/protocol/ll.hpp"
#include "beeline/collectives/impl/protocol/ll128.hpp"
#include "beeline/collectives/impl/schedule/in_packets.hpp"

namespace beeline::detail {

/// Reduces the slice of `call`, of any count, in as many rounds as needed, with `members` members (0: any number).
/// Returns invalid_argument if the group cannot send such packets.
template <class Schedule, class Protocol, std::uint32_t members = 0, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_packets(Session<Group>& session,
                                                                          const AllreduceCall<T>& call,
                                                                          Timeout timeout) {
  using Round = PacketRound<Protocol, Group, members>;
  const AllreduceCall<T> own = call.own();
  const Reduction reduction = call.call.reduction;
  if (!Round::serves(session)) return Status::invalid_argument;
  if (own.count == 0) return Status::ok;
  if (const Status status = session.begin(call.call); status != Status::ok) return status;
  if constexpr (std::is_same_v<Schedule, OneShot> && executor == DeviceKind::host)
    if (session.vector_bytes() != 0)
      return in_rounds(session, own.count, session.vector_bytes() / sizeof(T), [&](std::size_t done, std::size_t some) {
        return one_shot_on_host(session, own.destination + done, own.source + done, some, reduction, timeout);
      });
  const std::size_t most =
      Schedule::most_units(Round::area_units(session), session.context().size) * Round::unit_words * (8 / sizeof(T));
  return in_rounds(session, own.count, most, [&](std::size_t done, std::size_t some) {
    const auto count = static_cast<std::uint32_t>(some);
    bool is_new = false;
    if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
    const bool to_itself = (Schedule::by_parts && Round::sends_own_part) || session.sends_to_itself(timeout, is_new);
    const Round round(session, timeout, is_new, to_itself);
    return session.finish(
        Schedule::template run<T>(round, {own.destination + done, count}, {own.source + done, count}, reduction));
  });
}

}  // namespace beeline::detail
