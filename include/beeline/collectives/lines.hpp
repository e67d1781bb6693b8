// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors as lines: packets of 128 bytes (device/packets128.hpp), of 15 words and the round's number each.
///
/// Eight threads have a line: two words each, and the last one a word and the flag. Everything here is called by whole
/// warps, of which a line's eight threads do the same.

#include "beeline/collectives/words.hpp"

namespace beeline::detail {

inline constexpr std::uint32_t line_words = line_payload_bytes / 8;
/// Peers whose lines a thread has in its registers at once.
inline constexpr std::uint32_t line_peers = 4;

/// Whether the lane's group can exchange lines: its members do, and it consists of warps.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE bool has_lines(const Lane<Group>& lane) {
  if constexpr (std::is_same_v<Group, Thread>)
    return false;
  else
    return lane.area_lines() != 0 && lane.group().size() % 32 == 0;
}

/// One thread's part of a line.
struct LinePlace {
  std::uint32_t line, thread;
  bool exists;  ///< otherwise it only takes part in what its warp does

  [[nodiscard]] BEELINE_HOST_DEVICE bool holds_flag() const { return thread == line_threads - 1; }
  /// Its first word in the part that the lines make up.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t word() const { return line * line_words + 2 * thread; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return holds_flag() ? 1 : 2; }
};

/// How a round's words are cut into the members' parts: of whole lines, but for the last.
class LinedParts {
 public:
  BEELINE_HOST_DEVICE LinedParts(std::uint32_t words, std::uint32_t members)
      : words_(words), part_(((words + members - 1) / members + line_words - 1) / line_words * line_words) {}

  /// The first word of a member's part.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t first(std::uint32_t member) const { return member * part_; }
  /// Lines of a member's part. No part has more than the first.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t lines(std::uint32_t member) const {
    if (first(member) >= words_) return 0;
    const std::uint32_t rest = words_ - first(member);
    return ((rest < part_ ? rest : part_) + line_words - 1) / line_words;
  }

 private:
  std::uint32_t words_, part_;
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

  /// The thread's words of a line whose part begins at word `first`.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair load(std::uint32_t first, const LinePlace& place) const {
    const std::uint32_t word = first + place.word(), end = word + place.words();
    if (end > whole_words_) [[unlikely]]
      return gather_line<Element>(vector_, word, end < words_ ? end : words_, count_);
    const auto* const from = reinterpret_cast<const std::byte*>(vector_) + std::size_t{word} * 8;
    machine::PacketPair values{machine::load_as<std::uint64_t>(from), 0};
    if (!place.holds_flag()) values.high = machine::load_as<std::uint64_t>(from + 8);
    return values;
  }
  BEELINE_HOST_DEVICE void store(std::uint32_t first, const LinePlace& place, machine::PacketPair values) const {
    const std::uint32_t word = first + place.word(), end = word + place.words();
    if (end > whole_words_) [[unlikely]]
      return scatter_line<Element>(vector_, word, end < words_ ? end : words_, count_, values);
    auto* const to = reinterpret_cast<std::byte*>(vector_) + std::size_t{word} * 8;
    machine::store_as(to, values.low);
    if (!place.holds_flag()) machine::store_as(to + 8, values.high);
  }

 private:
  T* vector_;
  std::size_t step_;
  std::uint32_t count_, words_, whole_words_;
};

/// Stores line `to` of what this rank sends to `peer` in this round, where the thread's line exists.
template <class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void send_line(const Lane<Group>& lane, std::uint32_t peer, std::uint32_t to,
                                                  const LinePlace& place, machine::PacketPair words) {
  if (place.holds_flag()) words.high = lane.line_flag();
  const Context& ctx = lane.context();
  machine::warp_sync();  // a line is whole only when its eight threads store in one instruction
  if (place.exists) machine::store_packets(ctx.at(lane.line(ctx.rank, to) + place.thread, peer), words);
}

/// Lines `from` of what `line_peers` peers from `first` on sent in this round. `exists[k]`: whether the thread's line
/// of peer `first` + k does.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_lines(const Lane<Group>& lane, std::uint32_t first,
                                                                      std::uint32_t from, std::uint32_t thread,
                                                                      const bool (&exists)[line_peers],
                                                                      machine::PacketPair (&words)[line_peers],
                                                                      Timeout timeout) {
  const machine::PacketPair* const lines = lane.line(first, from) + thread;
  const std::size_t stride = std::size_t{lane.area_lines()} * line_threads;
  const std::uint64_t flag = lane.line_flag();
  const bool holds_flag = thread == line_threads - 1;
  Awaited awaited{Operation::collective, first, flag, flag};
  return poll_by_warp(lane.context(), awaited, timeout, [&](std::uint64_t& observed) {
    machine::warp_sync();  // data and flag in one instruction
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k)
      if (exists[k]) words[k] = machine::load_packets(lines + k * stride);
    bool all = true;
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < line_peers; ++k) {
      if (!exists[k] || !holds_flag || words[k].high == flag) continue;
      observed = words[k].high, awaited.peer = first + k;  // who is late, for the error
      all = false;
    }
    return all;
  });
}

}  // namespace beeline::detail
