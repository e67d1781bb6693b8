// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors as lines: packets of 128 bytes (device/packets128.hpp), of 15 words and the round's number each.
///
/// Eight threads have a line: two words each, and the last one a word and the flag. Everything here is called by whole
/// warps, of which a line's eight threads do the same.

#include "beeline/collectives/impl/words.hpp"

namespace beeline::detail {

inline constexpr std::uint32_t line_words = line_payload_bytes / 8;

/// Whether the session's group can exchange lines: its members do, and it consists of warps.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE bool has_lines(const Session<Group>& session) {
  if constexpr (std::is_same_v<Group, Thread>)
    return false;
  else
    return session.area_lines() != 0 && session.group().size() % 32 == 0;
}

/// One thread's part of a line.
struct LinePlace {
  std::uint32_t line, thread;
  bool exists;  ///< otherwise it only takes part in what its warp does

  [[nodiscard]] BEELINE_HOST_DEVICE bool holds_flag() const { return thread == line_threads - 1; }
  /// Its first word in the part that the lines make up.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t word() const { return line * line_words + 2 * thread; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return holds_flag() ? 1 : 2; }
  /// Bytes from its first word to its second; who holds the flag has one word, and moves it twice, to be no exception.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t second() const { return holds_flag() ? 0 : 8; }
};

/// Calls `visit(place, whole)` for each line (`for_each_line`). `whole` is true_type for warps whose lines are all
/// among the first `whole_lines`: code without exceptions for what exists, and lies whole and aligned in every vector.
template <class Group, class Visit>
BEELINE_INLINE BEELINE_HOST_DEVICE void for_each_place(const Group& group, std::uint32_t lines,
                                                       std::uint32_t whole_lines, const Visit& visit) {
  for_each_line(group, lines, [&](std::uint32_t line, std::uint32_t thread, bool exists) {
    if ((line | (lines_of_warp - 1)) < whole_lines)
      visit(LinePlace{line, thread, true}, std::true_type{});
    else
      visit(LinePlace{line, thread, exists}, std::false_type{});
  });
}

/// How a round's words are cut into the members' parts: of whole lines, but for the last.
class LinedParts {
 public:
  BEELINE_HOST_DEVICE LinedParts(std::uint32_t words, std::uint32_t members)
      : words_(words), members_(members),
        part_(((words + members - 1) / members + line_words - 1) / line_words * line_words) {}

  /// The first word of a member's part.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t first(std::uint32_t member) const { return member * part_; }
  /// Lines of a member's part. No part has more than the first.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t lines(std::uint32_t member) const {
    return words_from(member, words_) == 0 ? 0 : (words_from(member, words_) + line_words - 1) / line_words;
  }
  /// Lines that all parts have in the vector's first `words`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_lines(std::uint32_t words) const {
    return words_from(members_ - 1, words) / line_words;
  }

 private:
  /// Those of the vector's first `words` that are a member's.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words_from(std::uint32_t member, std::uint32_t words) const {
    if (first(member) >= words) return 0;
    const std::uint32_t rest = words - first(member);
    return rest < part_ ? rest : part_;
  }
  std::uint32_t words_, members_, part_;
};

/// Words of a line that the vector's end cuts, or that are not aligned.
template <class T>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE machine::PacketPair gather_line(const T* vector, std::uint32_t word,
                                                                               std::uint32_t words,
                                                                               std::uint32_t count) {
  machine::PacketPair gathered{0, 0};
  if (word < words) gathered.low = load_word(vector, word, count);
  if (word + 1 < words) gathered.high = load_word(vector, word + 1, count);
  return gathered;
}
template <class T>
BEELINE_COLD BEELINE_HOST_DEVICE void scatter_line(T* vector, std::uint32_t word, std::uint32_t words,
                                                   std::uint32_t count, machine::PacketPair values) {
  if (word < words) store_word(vector, word, count, values.low);
  if (word + 1 < words) store_word(vector, word + 1, count, values.high);
}

/// `count` elements anywhere, a round's, as words of lines. T may be const.
template <class T>
class LinedVector {
 public:
  using Element = std::remove_const_t<T>;
  /// `step`: bytes from one to the next of several such vectors.
  BEELINE_HOST_DEVICE LinedVector(T* vector, std::uint32_t count, std::size_t step = 0)
      : vector_(vector), step_(step), count_(count), words_(static_cast<std::uint32_t>(words_of<Element>(count))),
        whole_words_(((reinterpret_cast<std::uintptr_t>(vector) | step) & 7u) != 0
                         ? 0
                         : static_cast<std::uint32_t>(std::size_t{count} * sizeof(T) / 8)) {}

  /// The vector `index` steps behind.
  [[nodiscard]] BEELINE_HOST_DEVICE LinedVector at(std::uint32_t index) const {
    LinedVector other = *this;
    other.vector_ += index * step_ / sizeof(T);
    return other;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return words_; }
  /// Those up to which it holds whole, aligned words.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_words() const { return whole_words_; }

  /// The thread's words of a line whose part begins at word `first`; `whole`: which lies in whole words.
  template <bool whole>
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair load(std::uint32_t first, const LinePlace& place) const {
    const std::uint32_t word = first + place.word(), end = word + place.words();
    if (!whole && end > whole_words_) return gather_line<Element>(vector_, word, end < words_ ? end : words_, count_);
    const auto* const from = reinterpret_cast<const std::byte*>(vector_) + std::size_t{word} * 8;
    return {machine::load_as<std::uint64_t>(from), machine::load_as<std::uint64_t>(from + place.second())};
  }
  template <bool whole>
  BEELINE_HOST_DEVICE void store(std::uint32_t first, const LinePlace& place, machine::PacketPair values) const {
    const std::uint32_t word = first + place.word(), end = word + place.words();
    if (!whole && end > whole_words_)
      return scatter_line<Element>(vector_, word, end < words_ ? end : words_, count_, values);
    auto* const to = reinterpret_cast<std::byte*>(vector_) + std::size_t{word} * 8;
    machine::store_as(to, values.low);
    machine::store_as(to + place.second(), place.holds_flag() ? values.low : values.high);
  }

 private:
  T* vector_;
  std::size_t step_;
  std::uint32_t count_, words_, whole_words_;
};

/// One thread's end of the lines that a round sends and receives, among `members`, or (0) among any number: where the
/// compiler knows it, loops over them are unrolled.
template <std::uint32_t members>
class LineRound {
 public:
  /// Peers whose lines a thread has in its registers at once.
  static constexpr std::uint32_t batch = members == 0 ? 4 : members;

  /// `to_itself`: whether the rank sends lines to itself, too: a call that goes on after a time-out finds there what it
  /// may have overwritten in its vectors.
  template <class Group>
  BEELINE_HOST_DEVICE LineRound(const Session<Group>& session, Timeout timeout, bool to_itself)
      : ctx_(session.context()), thread_(session.group().thread_rank() % line_threads),
        out_(session.line(session.context().rank, 0) + thread_), in_(session.line(0, 0) + thread_),
        stride_(session.area_lines() * line_threads), flag_(session.line_flag()), timeout_(timeout),
        to_itself_(to_itself) {}

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return ctx_; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t size() const { return members == 0 ? ctx_.size : members; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_to_itself() const { return to_itself_; }
  /// Whether `peer` is there, and sends this rank lines.
  [[nodiscard]] BEELINE_HOST_DEVICE bool hears(std::uint32_t peer) const {
    return peer < size() && (to_itself_ || peer != ctx_.rank);
  }
  /// Whether the peer that is `distance` ahead, from 1 on, is sent lines.
  [[nodiscard]] BEELINE_HOST_DEVICE bool reaches(std::uint32_t distance) const {
    return distance < size() || (to_itself_ && distance == size());
  }

  /// Stores line `to` of what this rank sends: `words[k]` to the peer `step` + k ahead, where `exists[k]` says that the
  /// thread's line does.
  template <bool whole>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send(std::uint32_t step, std::uint32_t to, const bool (&exists)[batch],
                                               machine::PacketPair (&words)[batch]) const {
    const bool holds_flag = thread_ == line_threads - 1;
    machine::PacketPair* const mine = out_ + to * line_threads;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k) {
      words[k].high = holds_flag ? flag_ : words[k].high;
      // A line is whole only when its eight threads store in one instruction.
      if (k == 0 || !whole) machine::warp_sync();
      if (exists[k]) machine::store_packets(ctx_.translate(mine, peer_ahead(ctx_, step + k)), words[k]);
    }
  }

  /// The same to all it sends to.
  template <bool whole>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_to_all(std::uint32_t to, bool exists, machine::PacketPair word) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t step = 1; reaches(step); step += batch) {  // everyone begins with another peer
      machine::PacketPair words[batch];
      bool is_peer[batch];
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) words[k] = word, is_peer[k] = exists && reaches(step + k);
      send<whole>(step, to, is_peer, words);
    }
  }

  /// Lines `from` of what the peers from `first` on sent. `exists[k]`: whether peer first + k sends the thread's.
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive(std::uint32_t first, std::uint32_t from,
                                                                  const bool (&exists)[batch],
                                                                  machine::PacketPair (&words)[batch]) const {
    const machine::PacketPair* const lines = in_ + std::size_t{first} * stride_ + from * line_threads;
    const bool holds_flag = thread_ == line_threads - 1;
    const auto is_late = [&](std::uint32_t k) { return holds_flag && exists[k] && words[k].high != flag_; };
    const auto have_come = [&] {
      machine::warp_sync();  // data and flag in one instruction
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k)
        if (exists[k]) words[k] = machine::load_packets(lines + std::size_t{k} * stride_);
      bool any_late = false;
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k) any_late |= is_late(k);
      return !any_late;
    };
    return poll_by_warp(ctx_, timeout_, have_come, [&](std::uint64_t& observed) {
      Awaited awaited{Operation::collective, first, flag_, flag_, Compare::equal};
      BEELINE_UNROLL
      for (std::uint32_t k = 0; k < batch; ++k)
        if (is_late(k)) observed = words[k].high, awaited.peer = first + k;
      return awaited;
    });
  }

 private:
  const Context& ctx_;
  std::uint32_t thread_;
  machine::PacketPair* out_;       ///< its part of line 0 of what this rank sends, at its own place
  const machine::PacketPair* in_;  ///< the same of what member 0 sent; `stride_` on to the next member's
  std::uint32_t stride_;
  std::uint64_t flag_;
  Timeout timeout_;
  bool to_itself_;
};

}  // namespace beeline::detail
