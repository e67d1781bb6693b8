// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rounds in the protocol LL128. A line has 15 words and the round's number; see packet_round.hpp.

#include "beeline/collectives/impl/protocol/packet_round.hpp"

namespace beeline::detail {

/// One thread's part in a round of `members` members; 0: any number. With a number that the compiler knows, loops over
/// members are unrolled.
template <class Group, std::uint32_t members>
class PacketRound<LL128, Group, members> {
 public:
  static constexpr std::uint32_t unit_words = line_words;
  static constexpr bool sends_own_part = false;         ///< a member keeps its own part
  static constexpr bool any_pieces = false;             ///< only pieces of one length, which all members send to all
  static constexpr std::uint32_t frequent_members = 2;  ///< number of members with specialized code; 0: none
  /// Number of peers whose lines a thread holds in registers at the same time.
  static constexpr std::uint32_t batch = members == 0 ? 4 : members;
  using Place = LinePlace;
  using Value = machine::PacketPair;
  template <class T>
  using Vector = LinedVector<T>;

  [[nodiscard]] BEELINE_HOST_DEVICE static bool serves(const Session<Group>& session) {
    if constexpr (std::is_same_v<Group, Thread>)
      return false;
    else
      return session.area_lines() != 0 && session.group().size() % 32 == 0;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t area_units(const Session<Group>& session) {
    return session.area_lines();
  }

  BEELINE_HOST_DEVICE PacketRound(const Session<Group>& session, Timeout timeout, bool is_new, bool to_itself)
      : group_(session.group()), ctx_(session.context()), thread_(group_.thread_rank() % line_threads),
        out_(session.line(ctx_.rank, 0) + thread_), in_(session.line(0, 0) + thread_), state_(session.state()),
        stride_(session.area_lines() * line_threads), half_(session.area_lines() / 2), flag_(session.line_flag()),
        timeout_(timeout), is_new_(is_new), to_itself_(to_itself) {}

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return ctx_; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t size() const { return members == 0 ? ctx_.size : members; }
  /// The first unit of an area's second half.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half() const { return half_; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_new() const { return is_new_; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_to_itself() const { return to_itself_; }

  template <class Visit>
  BEELINE_INLINE BEELINE_HOST_DEVICE Status for_each(std::uint32_t lines, std::uint32_t whole_lines,
                                                     const Visit& visit) const {
    return for_each_line(group_, lines, whole_lines, visit);
  }

  template <class Load>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_all(std::uint32_t lines, std::uint32_t whole_lines,
                                                   const Load& load) const {
    static_cast<void>(for_each(lines, whole_lines, [&](const LinePlace& place, auto whole) {
      machine::PacketPair words{};
      if (place.exists) words = load(place, whole);
      send_on<whole()>(place, 0, words);
      return Status::ok;
    }));
  }
  template <bool whole>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_on(const LinePlace& place, std::uint32_t at,
                                                  machine::PacketPair word) const {
    send_to_each<whole>(at + place.unit, [&](std::uint32_t, machine::PacketPair& words) {
      words = word;
      return place.exists;
    });
  }
  /// As `send_on`, to the peers for which `gets(peer)` is true.
  template <class Gets>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_on_to(const LinePlace& place, std::uint32_t at, machine::PacketPair word,
                                                     const Gets& gets) const {
    send_to_each<false>(at + place.unit, [&](std::uint32_t peer, machine::PacketPair& words) {
      words = word;
      return place.exists && gets(peer);
    });
  }
  /// Waits for a line that `peer` sends to this member.
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_from(std::uint32_t peer, const LinePlace& place,
                                                                       machine::PacketPair& word) const {
    machine::PacketPair words[batch] = {};
    const bool exists[batch] = {place.exists};
    const Status status = receive(peer, place.unit, exists, words);
    word = words[0];
    return status;
  }
  template <class Parts>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_parts(const Parts& parts, std::uint32_t whole_lines) const {
    static_cast<void>(for_each(parts.most(), whole_lines, [&](const LinePlace& place, auto whole) {
      send_to_each<whole()>(place.unit, [&](std::uint32_t peer, machine::PacketPair& words) {
        const auto part = parts.of(peer);
        const bool exists = whole() || place.unit < part.units;
        if (exists) words = part.template load<whole()>(place);
        return exists;
      });
      return Status::ok;
    }));
  }
  template <class Parts>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_pieces(const Parts& parts, std::uint32_t whole_lines) const {
    send_parts(parts, whole_lines);
  }

  /// Threads without a line combine undefined words, which are never used.
  template <class T>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status combine(const LinePlace& place, Reduction reduction,
                                                                  machine::PacketPair own,
                                                                  machine::PacketPair& result) const {
    Partial<T, machine::PacketPair> partial;
    BEELINE_NO_UNROLL
    for (std::uint32_t first = 0; first < size(); first += batch) {
      machine::PacketPair words[batch];
      bool exists[batch];
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) exists[k] = place.exists && hears(first + k);
      if (const Status status = receive(first, place.unit, exists, words); status != Status::ok) return status;
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) {
        if (first + k >= size()) continue;
        const machine::PacketPair word = hears(first + k) ? words[k] : own;
        first + k == 0 ? partial.start(word) : partial.combine(reduction, word);
      }
    }
    result = partial.finish(reduction, size());
    return Status::ok;
  }

  template <class Parts>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_parts(std::uint32_t at, const Parts& parts,
                                                                        std::uint32_t whole_lines) const {
    return for_each(parts.most(), whole_lines, [&](const LinePlace& place, auto whole) {
      BEELINE_NO_UNROLL
      for (std::uint32_t first = 0; first < size(); first += batch) {
        machine::PacketPair words[batch];
        bool exists[batch];
        BEELINE_UNROLL
        for (std::uint32_t k = 0; k < batch; ++k)
          exists[k] = hears(first + k) && (whole() || place.unit < parts.of(first + k).units);
        const Status status = receive(first, at + place.unit, exists, words);
        if (status != Status::ok) return status;
        BEELINE_UNROLL
        for (std::uint32_t k = 0; k < batch; ++k)
          if (exists[k]) parts.of(first + k).template store<whole()>(place, words[k]);
      }
      return Status::ok;
    });
  }
  template <class Parts>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_pieces(const Parts& parts,
                                                                         std::uint32_t whole_lines) const {
    return receive_parts(0, parts, whole_lines);
  }

 private:
  /// Whether `peer` is a member that sends lines to this rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool hears(std::uint32_t peer) const {
    return peer < size() && (to_itself_ || peer != ctx_.rank);
  }
  /// Whether this rank sends lines to the peer at `distance` (1 or more) after it.
  [[nodiscard]] BEELINE_HOST_DEVICE bool reaches(std::uint32_t distance) const {
    return distance < size() || (to_itself_ && distance == size());
  }

  /// Stores line `to` into this rank's area at every receiver: `load(peer, words)` sets the thread's words, and returns
  /// whether the thread's line exists.
  template <bool whole, class Load>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_to_each(std::uint32_t to, const Load& load) const {
    machine::PacketPair* const mine = out_ + to * line_threads;
    BEELINE_NO_UNROLL
    for (std::uint32_t step = 1; reaches(step); step += batch) {  // each member begins with a different peer
      machine::PacketPair words[batch];
      bool exists[batch];
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k)
        exists[k] = reaches(step + k) && load(peer_ahead(ctx_, step + k), words[k]);
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) {
        words[k].high = holds_flag() ? flag_ : words[k].high;
        // A line is whole only when its eight threads store in one instruction.
        if (k == 0 || !whole) machine::warp_sync();
        if (exists[k]) machine::store_packets(ctx_.translate(mine, peer_ahead(ctx_, step + k)), words[k]);
      }
    }
  }

  /// Receives line `from` of the peers from `first` on. `exists[k]`: whether peer first + k sends this thread's line.
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive(std::uint32_t first, std::uint32_t from,
                                                                  const bool (&exists)[batch],
                                                                  machine::PacketPair (&words)[batch]) const {
    const machine::PacketPair* const lines = in_ + std::size_t{first} * stride_ + from * line_threads;
    const auto is_late = [&](std::uint32_t k) { return holds_flag() && exists[k] && words[k].high != flag_; };
    const auto have_come = [&] {
      machine::warp_sync();  // data and flag are loaded by one instruction
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k)
        if (exists[k]) words[k] = machine::load_packets(lines + std::size_t{k} * stride_);
      bool any_late = false;
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) any_late |= is_late(k);
      return !any_late;
    };
    return poll_by_warp(ctx_, timeout_, have_come, [&](std::uint64_t& observed) {
      SessionWait awaited{first, Compare::equal, state_, flag_};
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k)
        if (is_late(k)) observed = words[k].high, awaited.peer = first + k;
      return awaited;
    });
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool holds_flag() const { return thread_ == line_threads - 1; }

  const Group& group_;
  const Context& ctx_;
  std::uint32_t thread_;
  machine::PacketPair* out_;       ///< the thread's part of line 0 of this rank's outgoing area, at its own offset
  const machine::PacketPair* in_;  ///< the thread's part of line 0 from member 0; the next member's area is `stride_`
                                   ///< further
  SessionState* state_;
  std::uint32_t stride_, half_;
  std::uint64_t flag_;
  Timeout timeout_;
  bool is_new_, to_itself_;
};

}  // namespace beeline::detail
