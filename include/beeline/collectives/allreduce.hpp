// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce: every member gets the combination of all members' vectors, with the same bits.

#include "beeline/collectives/algorithm.hpp"
#include "beeline/collectives/allreduce_packets.hpp"
#include "beeline/collectives/allreduce_packets128.hpp"
#include "beeline/collectives/allreduce_peer.hpp"
#include "beeline/collectives/call_check.hpp"
#include "beeline/collectives/reduce_by.hpp"
#include "beeline/device/grid.hpp"

namespace beeline {

namespace detail {

/// The algorithm for vectors of so many bytes on one lane. Follows from what all members know.
[[nodiscard]] BEELINE_HOST_DEVICE inline Algorithm choose_allreduce(const Context& ctx, std::size_t bytes) {
  if (executor == DeviceKind::host && !ctx.mixed)
    return suits_one_shot_on_host(bytes, ctx.size) ? Algorithm::packets_one_shot : Algorithm::two_shot;
  constexpr std::size_t packet_bytes = 32768;
  if (bytes * (ctx.size - 1) <= packet_bytes) return Algorithm::packets_one_shot;
  return bytes <= packet_bytes || ctx.mixed ? Algorithm::packets_two_shot : Algorithm::two_shot;
}

/// All-reduce by `algorithm`; see below.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status run_allreduce(Lane<Group>& lane, const AllreduceCall<T>& call,
                                                                      Timeout timeout, Algorithm algorithm) {
  const bool is_chosen = algorithm == Algorithm::automatic;
  const AllreduceCall<T> own = call.own();
  // All lanes come to the same choice: by the first slice, which is the longest.
  const std::size_t longest = part_of(call.count, call.slices, 0, elements_in_16<T>).count;
  if (is_chosen) algorithm = choose_allreduce(lane.context(), longest * sizeof(T));
  if (is_chosen && longest < lane.context().size) algorithm = Algorithm::packets_one_shot;  // no work to share
  switch (algorithm) {
    case Algorithm::packets_one_shot:
      return allreduce_packets<true>(lane, own.destination, own.source, own.count, own.reduction, timeout);
    case Algorithm::packets_two_shot:
      return allreduce_packets<false>(lane, own.destination, own.source, own.count, own.reduction, timeout);
    case Algorithm::packets128_one_shot:
    case Algorithm::packets128_two_shot:
      // What is never chosen is not compiled where the choice is automatic; nor is what only GPUs have, for hosts.
      if constexpr (executor == DeviceKind::gpu)
        if (!is_chosen)
          return algorithm == Algorithm::packets128_one_shot
                     ? allreduce_packets128<true>(lane, own.destination, own.source, own.count, own.reduction, timeout)
                     : allreduce_packets128<false>(lane, own.destination, own.source, own.count, own.reduction,
                                                   timeout);
      return Status::invalid_argument;
    case Algorithm::two_shot:
      if (lane.context().mixed) return Status::invalid_argument;
      return call.count == 0 ? Status::ok : allreduce_two_shot(lane, call, timeout);
    default:
      if (is_chosen) return Status::invalid_argument;
      return reduce_by(lane, ReductionPlan<T>{own.destination, own.source, own.count, own.reduction},
                       {timeout, algorithm, nullptr});
  }
}

/// On channels that check, whether the members make this call.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status check_allreduce(Lane<Group>& lane, const AllreduceCall<T>& call,
                                                                        Timeout timeout, Algorithm algorithm) {
  const CallSignature signature{.operation = CollectiveOperation::allreduce,
                                .type = ElementTraits<T>::type,
                                .reduction = call.reduction,
                                .algorithm = algorithm,
                                .slices = call.slices,
                                .count = call.count};
  return compare_calls(lane, signature, timeout);
}

/// `run_allreduce` after that.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status checked_allreduce(Lane<Group>& lane,
                                                                          const AllreduceCall<T>& call, Timeout timeout,
                                                                          Algorithm algorithm) {
  if (const Status status = check_allreduce(lane, call, timeout, algorithm); status != Status::ok) return status;
  const Status status = run_allreduce(lane, call, timeout, algorithm);
  if (status == Status::ok) lane.set_checked(false);
  return status;
}

}  // namespace detail

/// Combines `count` elements of every member on this lane.
///   source       [count] any local address, unchanged until the call has ended with ok
///   destination  [count] any local address; may be `source`; else the two do not overlap
///   timeout      the call's own limit; after `timeout` the same call continues
/// Every thread of the lane's group calls it, on every member with the same count, reduction and algorithm. Blocking:
/// with ok the result is visible to the group, and `source` may change. Nothing else is ordered between members.
/// Returns ok, timeout, deadline, aborted; invalid_argument for an algorithm that all-reduce does not have here (in
/// teams of both kinds of rank only those in packets), and, on channels that check, when members make different calls
/// or this one makes two at once: then the team is aborted, and the host's error says who is in which. Source: seed
/// 000, 6.8; MPI 4.0, 6.9.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce(Lane<Group>& lane, T* destination, const T* source,
                                                                  std::size_t count, Reduction reduction,
                                                                  Timeout timeout = Timeout::none(),
                                                                  Algorithm algorithm = Algorithm::automatic) {
  return detail::checked_allreduce(lane, detail::AllreduceCall<T>{destination, source, count, reduction}, timeout,
                                   algorithm);
}

/// As above by one group of each member, on lane 0: nobody else uses the channel meanwhile.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce(const Group& group, const Context& ctx,
                                                                  const CollectiveChannel& channel, T* destination,
                                                                  const T* source, std::size_t count,
                                                                  Reduction reduction,
                                                                  Timeout timeout = Timeout::none()) {
  Lane<Group> lane(group, ctx, channel, 0);
  return allreduce(lane, destination, source, count, reduction, timeout);
}

/// As above by a whole grid, of as many blocks on every member: each block takes a share, on the lane of its number.
/// Returns each block the status of its share; the result is visible to all threads after `grid.sync`, and after the
/// kernel. After `timeout`, the blocks call again that got it.
template <class T, class BlockGroup>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce(const Grid<BlockGroup>& grid, const Context& ctx,
                                                                  const CollectiveChannel& channel, T* destination,
                                                                  const T* source, std::size_t count,
                                                                  Reduction reduction,
                                                                  Timeout timeout = Timeout::none(),
                                                                  Algorithm algorithm = Algorithm::automatic) {
  if (grid.blocks() > channel.lanes) return Status::invalid_argument;
  Lane<BlockGroup> lane(grid.block(), ctx, channel, grid.block_rank());
  const detail::AllreduceCall<T> call{destination, source, count, reduction, grid.block_rank(), grid.blocks()};
  return detail::checked_allreduce(lane, call, timeout, algorithm);
}

}  // namespace beeline
