// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol LL128: 120 bytes of data and 8 of flag in one line, stored by eight neighbouring threads of a warp in
/// one instruction. Where LL spends half of every store on flags, this spends a sixteenth.
///
/// Nothing guarantees that a line arrives whole: PTX promises it for 8 bytes. So lines travel between GPUs only, and
/// only in worlds whose self-test has seen no torn one (`LL128Rings`, beeline/host/packets.hpp); elsewhere LL serves.
/// Source: NCCL's LL128 protocol.
///
/// Eight threads have a line: two words each, and the last one a word and the flag. Everything here is called by whole
/// warps, of which a line's eight threads do the same.

#include <type_traits>

#include "beeline/device/impl/ll.hpp"
#include "beeline/device/impl/warp_machine.hpp"

namespace beeline {

/// A line, what it carries, and the threads that move it.
inline constexpr std::uint32_t line_bytes = 128, line_payload_bytes = 120, line_threads = 8;

namespace detail {

inline constexpr std::uint32_t line_words = line_payload_bytes / 8;

/// As `poll_until`, by a whole warp: until `ready()` holds on all its threads, which get the same result. One that
/// waits still looks at the clock, and records what it waits for: `awaited(observed)` returns that, and sets what it
/// saw.
template <class Ready, class AwaitedOf>
BEELINE_HOST_DEVICE Status poll_by_warp(const Context& ctx, Timeout timeout, Ready ready, AwaitedOf awaited) {
  WaitState state{Status::ok, 0};
  for (;;) {
    bool waits = true;
    BEELINE_NO_UNROLL
    for (std::uint32_t left = polls_per_look; left > 0; --left) {
      waits = !ready();
      if (!machine::warp_any(waits)) return Status::ok;
      if (timeout.ns == 0) return Status::timeout;
    }
    const unsigned looker = machine::first_lane(waits);
    if (machine::lane() == looker) {
      std::uint64_t observed = 0;
      const auto what = awaited(observed);
      state = look(ctx, what, timeout, observed, state.start_ns);
    }
    state.start_ns = machine::from_lane(state.start_ns, looker);  // another may look next
    const Status status = agree(Warp{}, state.status);
    if (status != Status::ok) return status;
  }
}

/// One thread's part of a line.
struct LinePlace {
  std::uint32_t unit;    ///< the line
  std::uint32_t thread;  ///< of the eight
  bool exists;           ///< otherwise it only takes part in what its warp does

  [[nodiscard]] BEELINE_HOST_DEVICE bool holds_flag() const { return thread == line_threads - 1; }
  /// Its first word in the part that the lines make up.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t word() const { return unit * line_words + 2 * thread; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return holds_flag() ? 1 : 2; }
  /// Bytes from its first word to its second; who holds the flag has one word, and moves it twice, to be no exception.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t second() const { return holds_flag() ? 0 : 8; }
};

/// Calls `visit(place, whole)`, until it returns another status than ok to the whole warp, on all threads of every warp
/// that has one of the `lines`, also those that have none themselves: votes and stores are the warp's. A line is always
/// the same threads'. `whole` is true_type for warps
/// whose lines are all among the first `whole_lines`: code without exceptions for what exists, and lies whole and
/// aligned in every vector.
template <class Group, class Visit>
BEELINE_INLINE BEELINE_HOST_DEVICE Status for_each_line(const Group& group, std::uint32_t lines,
                                                        std::uint32_t whole_lines, const Visit& visit) {
  constexpr std::uint32_t lines_of_warp = 32 / line_threads;
  const std::uint32_t thread = group.thread_rank() % line_threads, first = group.thread_rank() / line_threads;
  const std::uint32_t first_of_warp = first / lines_of_warp * lines_of_warp, step = group.size() / line_threads;
  BEELINE_NO_UNROLL
  for (std::uint32_t base = 0; base + first_of_warp < lines; base += step) {
    const std::uint32_t line = base + first;
    const Status status = (line | (lines_of_warp - 1)) < whole_lines
                              ? visit(LinePlace{line, thread, true}, std::true_type{})
                              : visit(LinePlace{line, thread, line < lines}, std::false_type{});
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

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

/// `count` elements anywhere, a message's or a round's, as words of lines. T may be const.
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

}  // namespace detail

/// Packets of 128 bytes: between GPUs, by warps and blocks of whole warps.
struct LL128 {
  static constexpr std::uint32_t unit_bytes = line_bytes;             ///< of a ring: a line
  static constexpr std::uint32_t payload_bytes = line_payload_bytes;  ///< of these
  static constexpr std::uint32_t threads = 32;                        ///< of which a group has a multiple

  /// Sends a message in `units` lines, which may be more than it fills.
  template <class Group>
  BEELINE_HOST_DEVICE static void write(const Group& group, std::uint32_t sequence,
                                        const detail::OutgoingMessage& message, std::uint32_t units) {
    const detail::LinedVector<const std::byte> vector(message.memory, message.bytes);
    static_cast<void>(detail::for_each_line(group, units, 0, [&](const detail::LinePlace& place, auto) {
      machine::PacketPair words{};
      if (place.exists) words = vector.template load<false>(0, place);
      if (place.holds_flag()) words.high = flag_of(sequence);
      machine::warp_sync();  // a line is whole only when its eight threads store in one instruction
      if (place.exists) machine::store_packets(message.slot + place.unit * line_threads + place.thread, words);
      return Status::ok;
    }));
  }

  /// This thread's part of a message, of `units` lines, when it has come. Returns what the thread has come to.
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE static Status read(const Group& group, const Context& ctx, const Awaited& awaited,
                                                       Timeout timeout, const detail::IncomingMessage& message,
                                                       std::uint32_t units) {
    const detail::LinedVector<std::byte> vector(message.memory, message.bytes);
    const std::uint64_t flag = flag_of(static_cast<std::uint32_t>(awaited.sequence));
    return detail::for_each_line(group, units, 0, [&](const detail::LinePlace& place, auto) {
      machine::PacketPair words{};
      const auto has_come = [&] {
        machine::warp_sync();  // a line's data and flag in one instruction
        if (place.exists) words = machine::load_packets(message.slot + place.unit * line_threads + place.thread);
        return !place.exists || !place.holds_flag() || words.high == flag;
      };
      const Status status = detail::poll_by_warp(ctx, timeout, has_come, [&](std::uint64_t& observed) {
        observed = words.high >> 32;
        return awaited;
      });
      if (status == Status::ok && place.exists) vector.template store<false>(0, place, words);
      return status;
    });
  }

 private:
  /// The word that ends a line of message `sequence`: where a new ring holds the sequence before the first.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t flag_of(std::uint32_t sequence) {
    return std::uint64_t{sequence} << 32;
  }
};

}  // namespace beeline
