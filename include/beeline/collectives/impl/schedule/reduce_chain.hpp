// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A reduction to a root along a chain of GPUs, chunk by chunk, in the order of ranks: each member combines the partial
/// result of the previous member with its own vector, and stores the new partial result to the next member's channel
/// memory; the last member stores the result to the root.
///
///     rank 0 --> rank 1 --> ... --> last rank --> root: rank 0, or the last rank itself
///
/// Each link carries the vector once each way, and each member receives from one other member only. The result has the
/// same bits as by the other algorithms: elements are combined in the order of ranks, and partial results are not
/// rounded.

#include "beeline/collectives/impl/reduction_plan.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// Whether a reduction goes along a chain: in kernels that make a whole call, which has no time-out. Types that are
/// combined in wider types would be rounded at each member, and an average is divided at the end.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE bool reduces_along_chain(const Session<Group>& session,
                                                           const ReductionPlan<T>& plan) {
  constexpr auto sizes = selection::reduce_chain;
  const std::uint32_t members = session.context().size, root = plan.call.root;
  return executor == DeviceKind::gpu && std::is_floating_point_v<T> && std::is_same_v<Accumulator<T>, T> &&
         members > 2 && (root == 0 || root == members - 1) && plan.call.reduction != Reduction::average &&
         session.starts_kernel() && plan.call.count * sizeof(T) >= sizes.least_vector &&
         2 * session.staging_bytes() >= sizes.places * sizes.most_chunk;
}

/// A member's steps for the chunks of its slice.
template <class T, class Group>
class ReduceChain {
 public:
  /// `result`: at the last member, the address of the root's slice.
  BEELINE_HOST_DEVICE ReduceChain(const Session<Group>& session, const ReductionPlan<T>& plan, std::byte* result)
      : session_(session), ctx_(session.context()), plan_(plan), result_(result) {
    constexpr auto chunks = sizes;
    bytes_ = chunks.chunk_of(plan.count * sizeof(T));
  }

  static constexpr auto sizes = selection::reduce_chain;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunks() const {
    return static_cast<std::uint32_t>((plan_.count * sizeof(T) + bytes_ - 1) / bytes_);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t previous() const { return ctx_.rank == 0 ? no_peer : ctx_.rank - 1; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t next() const {
    return ctx_.rank + 1 == ctx_.size ? no_peer : ctx_.rank + 1;
  }

  BEELINE_HOST_DEVICE void hand_on(std::uint32_t chunk) const {
    const std::size_t first = chunk * bytes_, rest = plan_.count * sizeof(T) - first;
    const std::size_t bytes = rest < bytes_ ? rest : bytes_;
    const std::byte* const own = reinterpret_cast<const std::byte*>(plan_.source) + first;
    std::byte* const place = session_.staging(0) + chunk % sizes.places * sizes.most_chunk;
    std::byte* const to = next() == no_peer ? result_ + first : ctx_.translate(place, next());
    if (previous() == no_peer) return copy_bytes(session_.group(), to, own, bytes);
    combine_into<T, 4>({session_.group().thread_rank(), session_.group().size()}, FetchedVectors{own, {place, 0, 1}, 1},
                       reinterpret_cast<T*>(to), bytes / sizeof(T), plan_.call.reduction);
  }

 private:
  const Session<Group>& session_;
  const Context& ctx_;
  const ReductionPlan<T>& plan_;
  std::byte* result_;
  std::size_t bytes_;  ///< bytes of a chunk
};

/// The call, after the address exchange.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_along_chain(Session<Group>& session, const ReductionPlan<T>& plan,
                                                            std::byte* result, Timeout timeout) {
  constexpr std::uint32_t places = selection::reduce_chain.places;
  const ReduceChain<T, Group> chain(session, plan, result);
  for (std::uint32_t chunk = 0; chunk < chain.chunks(); ++chunk) {
    const Status status = session.pass_through(chain.previous(), chain.next(), chunk < places ? 0 : places, timeout,
                                               [&] { chain.hand_on(chunk); });
    if (status != Status::ok) return status;
  }
  return session.barrier(Order::memory, timeout);
}

}  // namespace beeline::detail
