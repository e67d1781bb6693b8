// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol LL128: 120 bytes of data and 8 of flag in one line, stored by eight neighbouring threads of a warp in
/// one instruction. LL uses half of every store for flags, LL128 a sixteenth.
///
/// PTX guarantees that 8 bytes arrive whole, but not that a line does. So lines are used only between GPUs, and only in
/// worlds whose self-test has seen no torn line (`LL128Rings`, beeline/host/packets.hpp); other worlds use LL. Source:
/// NCCL's LL128 protocol.
///
/// Eight threads share a line: two words each, the last thread a word and the flag. Whole warps call these functions,
/// and the eight threads of a line take the same branches.

#include <type_traits>

#include "beeline/device/impl/ll.hpp"
#include "beeline/device/impl/warp_machine.hpp"

namespace beeline {

/// Bytes of a line, bytes of its payload, and the threads that move it.
inline constexpr std::uint32_t line_bytes = 128, line_payload_bytes = 120, line_threads = 8;

namespace detail {

inline constexpr std::uint32_t line_words = line_payload_bytes / 8;

/// As `poll_until`, by a whole warp: polls until `ready()` is true on all threads, which get the same result. A thread
/// that still waits checks the clock and records the wait: `awaited(observed)` returns its description, and sets the
/// observed value.
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
    state.start_ns = machine::from_lane(state.start_ns, looker);  // another thread may check next
    const Status status = agree(Warp{}, state.status);
    if (status != Status::ok) return status;
  }
}

/// One thread's part of a line.
struct LinePlace {
  std::uint32_t unit;    ///< index of the line
  std::uint32_t thread;  ///< index among the line's eight threads
  bool exists;           ///< false: there is no such line, and the thread only takes part in operations of its warp

  [[nodiscard]] BEELINE_HOST_DEVICE bool holds_flag() const { return thread == line_threads - 1; }
  /// The thread's first word in the payload of all lines.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t word() const { return unit * line_words + 2 * thread; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return holds_flag() ? 1 : 2; }
  /// Bytes from the thread's first word to its second. The thread with the flag has one word, and moves it twice, so
  /// that the code has no special case.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t second() const { return holds_flag() ? 0 : 8; }
};

/// Calls `visit(place, whole)` on all threads of every warp that has one of the `lines`, also on threads without a
/// line, since votes and stores concern the whole warp. Stops when `visit` returns another status than ok to the whole
/// warp. A line always has the same threads. `whole` is true_type for warps whose lines are all among the first
/// `whole_lines`: these lines exist, and are whole and aligned in every vector, so the code needs no special cases.
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

/// Loads words of a line at the end of the vector, or words that are not aligned.
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

/// `count` elements at any address, of a message or of a round, as words of lines. T may be const.
template <class T>
class LinedVector {
 public:
  using Element = std::remove_const_t<T>;
  /// `step`: bytes from a vector to the next, if there are several.
  BEELINE_HOST_DEVICE LinedVector(T* vector, std::uint32_t count, std::size_t step = 0)
      : vector_(vector), step_(step), count_(count), words_(static_cast<std::uint32_t>(words_of<Element>(count))),
        whole_words_(((reinterpret_cast<std::uintptr_t>(vector) | step) & 7u) != 0
                         ? 0
                         : static_cast<std::uint32_t>(std::size_t{count} * sizeof(T) / 8)) {}

  /// The vector `index` steps after this one.
  [[nodiscard]] BEELINE_HOST_DEVICE LinedVector at(std::uint32_t index) const {
    LinedVector other = *this;
    other.vector_ += index * step_ / sizeof(T);
    return other;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const { return words_; }
  /// Number of words at the vector's start that are whole and aligned.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_words() const { return whole_words_; }

  /// The thread's words of a line of the part that begins at word `first`; `whole`: the line consists of whole words.
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
  static constexpr std::uint32_t unit_bytes = line_bytes;             ///< a unit of a ring is a line
  static constexpr std::uint32_t payload_bytes = line_payload_bytes;  ///< payload of a unit
  static constexpr std::uint32_t threads = 32;                        ///< the size of a group is a multiple of this

  /// Sends a message in `units` lines, which may be more than the message needs.
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

  /// Waits for this thread's part of a message of `units` lines, and stores it. Returns the thread's status.
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE static Status read(const Group& group, const Context& ctx, const Awaited& awaited,
                                                       Timeout timeout, const detail::IncomingMessage& message,
                                                       std::uint32_t units) {
    const detail::LinedVector<std::byte> vector(message.memory, message.bytes);
    const std::uint64_t flag = flag_of(static_cast<std::uint32_t>(awaited.sequence));
    return detail::for_each_line(group, units, 0, [&](const detail::LinePlace& place, auto) {
      machine::PacketPair words{};
      const auto has_come = [&] {
        machine::warp_sync();  // a line's data and flag are loaded by one instruction
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
  /// The flag of a line of message `sequence`. A new ring is zeroed, which is the sequence before the first.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t flag_of(std::uint32_t sequence) {
    return std::uint64_t{sequence} << 32;
  }
};

}  // namespace beeline
