// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An all-reduce's one-shot round between CPUs: a packet is a whole vector after one flag. With packets of 8 bytes a
/// CPU thread would move one packet after the other, in twice as many cache lines.

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// Sends `bytes` to every member, this one included: if the call continues after a time-out, `source` may already be
/// overwritten.
template <class Group>
BEELINE_HOST_DEVICE void send_vector(const Session<Group>& session, const void* source, std::size_t bytes) {
  const Context& ctx = session.context();
  const Group& group = session.group();
  std::uint64_t* const flag = session.vector_flag(ctx.rank);
  const Range mine = part_of(bytes, group.size(), group.thread_rank(), 64);
  const auto* const from = static_cast<const std::byte*>(source) + mine.first;
  for (std::uint32_t step = 1; step <= ctx.size; ++step)  // each member begins with a different peer
    std::memcpy(reinterpret_cast<std::byte*>(ctx.translate(flag + 1, peer_ahead(ctx, step))) + mine.first, from,
                mine.count);
  group.sync();
  if (group.thread_rank() != 0) return;
  for (std::uint32_t step = 1; step <= ctx.size; ++step)
    SystemAtomic<std::uint64_t>(*ctx.translate(flag, peer_ahead(ctx, step)))
        .store(session.line_flag(), std::memory_order_release);
}

/// Waits until the vectors of all members have arrived. Every thread waits for all vectors.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status await_vectors(const Session<Group>& session, Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint64_t flag = session.line_flag();
  for (std::uint32_t member = 0; member < ctx.size; ++member) {
    const SystemAtomic<std::uint64_t> arrived(*session.vector_flag(member));
    const SessionWait awaited{member, Compare::equal, session.state(), flag};
    const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
      observed = arrived.load(std::memory_order_acquire);
      return observed == flag;
    });
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// One round: every member sends its whole vector to all members, and combines all vectors. `count` elements fit
/// `Session::vector_bytes`.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status one_shot_on_host(Session<Group>& session, T* destination, const T* source,
                                                          std::size_t count, Reduction reduction, Timeout timeout) {
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  if (is_new) {
    session.enter_vectors();
    send_vector(session, source, count * sizeof(T));
  }
  const Status status = await_vectors(session, timeout);
  if (status == Status::ok) {
    const ThreadShare threads{session.group().thread_rank(), session.group().size()};
    const auto* const vectors = reinterpret_cast<const std::byte*>(session.vector_flag(0) + 1);
    combine_into(threads, CollectedVectors{vectors, session.vector_step(), session.context().size}, destination, count,
                 reduction);
  }
  return session.finish(status);
}

}  // namespace beeline::detail
