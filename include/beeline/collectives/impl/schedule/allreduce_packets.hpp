// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce in packets: vectors anywhere, no barrier, no fence. Source: seed 000, 6.8 (all-gather; all-to-all +
/// all-gather), in the protocol LL.

#include "beeline/collectives/impl/one_shot_on_host.hpp"
#include "beeline/collectives/impl/words.hpp"

namespace beeline::detail {

/// One round: everyone sends everything to all, and reduces. `count` elements that fit an area.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status one_shot_round(Session<Group>& session, T* destination,
                                                                       const T* source, std::uint32_t count,
                                                                       Reduction reduction, Timeout timeout) {
  const std::uint32_t thread = session.group().thread_rank(), threads = session.group().size();
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  const auto words = static_cast<std::uint32_t>(words_of<T>(count));
  const auto word = [&](std::uint32_t i) { return load_word(source, i, count); };
  const bool to_itself = session.sends_to_itself(timeout, is_new);
  if (is_new) session.send_words_to_all(words, to_itself, word);
  Status status = Status::ok;
  for (std::uint32_t i = thread; i < words && status == Status::ok; i += threads) {
    std::uint64_t result = 0, own = to_itself ? 0 : word(i);
    status = ReceivedWords<T, Group>(session, i, to_itself ? nullptr : &own).reduce(reduction, timeout, result);
    if (status == Status::ok) store_word(destination, i, count, result);
  }
  return session.finish(status);
}

/// Reduces this member's part, of `words` words, as it comes, and sends it to all, behind what they got.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce_own_part(const Session<Group>& session,
                                                                        std::uint32_t words, Reduction reduction,
                                                                        Timeout timeout) {
  const Context& ctx = session.context();
  Status status = Status::ok;
  for (std::uint32_t i = session.group().thread_rank(); i < words && status == Status::ok;
       i += session.group().size()) {
    std::uint64_t result = 0;
    status = ReceivedWords<T, Group>(session, i, nullptr).reduce(reduction, timeout, result);
    if (status != Status::ok) return status;
    for (std::uint32_t step = 1; step <= ctx.size; ++step)
      session.send_word(peer_ahead(ctx, step), session.area_words() / 2 + i, result);
  }
  return status;
}

/// One round: a part of the vector to each, who reduces it, and sends it to all. Parts fit half an area.
///
/// A thread of the owner sends a reduced word on as soon as it has it, in the second half of the areas: the two steps
/// need no barrier between them. What was received before a time-out is still there, so all of it is done again.
template <class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status two_shot_round(Session<Group>& session, T* destination,
                                                                       const T* source, std::uint32_t count,
                                                                       Reduction reduction, Timeout timeout) {
  const Context& ctx = session.context();
  const std::uint32_t thread = session.group().thread_rank(), threads = session.group().size();
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  const auto words = static_cast<std::uint32_t>(words_of<T>(count));
  const std::uint32_t part = (words + ctx.size - 1) / ctx.size;
  const auto words_of_part = [&](std::uint32_t owner) {
    return owner * part >= words ? 0 : words - owner * part < part ? words - owner * part : part;
  };
  if (is_new)
    for (std::uint32_t step = 1; step <= ctx.size; ++step) {  // everyone begins with another peer
      const std::uint32_t peer = peer_ahead(ctx, step);
      for (std::uint32_t i = thread; i < words_of_part(peer); i += threads)
        session.send_word(peer, i, load_word(source, peer * part + i, count));
    }
  Status status = reduce_own_part<T>(session, words_of_part(ctx.rank), reduction, timeout);
  for (std::uint32_t step = 0; step < ctx.size; ++step) {
    const std::uint32_t peer = peer_ahead(ctx, step);
    for (std::uint32_t i = thread; i < words_of_part(peer) && status == Status::ok; i += threads) {
      std::uint64_t result[1];
      status = session.receive_words(peer, session.area_words() / 2 + i, result, timeout);
      if (status == Status::ok) store_word(destination, peer * part + i, count, result[0]);
    }
  }
  return session.finish(status);
}

/// All-reduce of any count, in as many rounds as it needs.
template <bool one_shot, class T, class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status allreduce_packets(Session<Group>& session, T* destination,
                                                                          const T* source, std::size_t count,
                                                                          Reduction reduction, Timeout timeout) {
  if constexpr (one_shot && executor == DeviceKind::host)
    if (session.vector_bytes() != 0)
      return in_rounds(session, count, session.vector_bytes() / sizeof(T), [&](std::size_t done, std::size_t some) {
        return one_shot_on_host(session, destination + done, source + done, some, reduction, timeout);
      });
  const std::size_t words =
      one_shot ? session.area_words() : std::size_t{session.area_words()} / 2 * session.context().size;
  const std::size_t most = words * (8 / sizeof(T));
  return in_rounds(session, count, most, [&](std::size_t done, std::size_t all) {
    const auto some = static_cast<std::uint32_t>(all);
    return one_shot ? one_shot_round(session, destination + done, source + done, some, reduction, timeout)
                    : two_shot_round(session, destination + done, source + done, some, reduction, timeout);
  });
}

}  // namespace beeline::detail
