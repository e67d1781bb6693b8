// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a task is written into its slot, and read from it (core/task.hpp).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "beeline/core/task.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/impl/warp_machine.hpp"
#include "beeline/device/impl/words.hpp"
#include "beeline/device/signaled_word.hpp"

namespace beeline::detail {

/// In a team with tasks either all members are GPUs, whose rings are in GPU memory, or all are host ranks.
inline constexpr bool task_words_are_whole = executor == DeviceKind::gpu;

/// Loads a word of a slot. CPU threads read the value only beside the expected signal: before that, an engine may be
/// copying bytes there.
[[nodiscard]] BEELINE_HOST_DEVICE inline SignaledWord load_task_word(const SignaledWord* word,
                                                                     [[maybe_unused]] std::uint64_t sequence) {
  if constexpr (executor == DeviceKind::host)
    if (load_acquired(word->signal) != sequence) return {};
  return load_signaled(word, task_words_are_whole);
}

/// A poster's access to a slot.
///   is_copy  whether the slot is a copy in the poster's memory, which an engine reads once all of it is written
template <bool is_copy>
class TaskSlotWriter {
 public:
  BEELINE_HOST_DEVICE TaskSlotWriter(SignaledWord* slot, std::uint64_t sequence) : slot_(slot), sequence_(sequence) {}

  BEELINE_HOST_DEVICE void store(std::uint32_t word, std::uint64_t value) const {
    SignaledWord* const to = &slot_[task_word_position(word)];
    if constexpr (is_copy)
      machine::store_as(reinterpret_cast<std::byte*>(to), machine::Word16{value, sequence_});
    else
      store_signaled(to, {value, sequence_}, task_words_are_whole);
  }
  BEELINE_HOST_DEVICE void store_header(const TaskHeader& header) const {
    std::uint64_t words[task_header_words];
    std::memcpy(words, &header, sizeof header);
    BEELINE_UNROLL
    for (std::uint32_t i = 0; i < task_header_words; ++i) store(i, words[i]);
  }
  /// Stores bytes of any alignment into the slot, beginning at `word`. Loads first, so that all loads are in flight
  /// together.
  BEELINE_HOST_DEVICE void store_bytes(std::uint32_t word, const void* from, std::uint32_t bytes) const {
    constexpr std::uint32_t at_once = 8;
    const auto* const source = static_cast<const std::uint8_t*>(from);
    const std::uint32_t words = (bytes + 7) / 8;
    BEELINE_NO_UNROLL
    for (std::uint32_t base = 0; base < words; base += at_once) {
      std::uint64_t values[at_once] = {};
      BEELINE_UNROLL
      for (std::uint32_t i = 0; i < at_once; ++i)
        if (base + i < words) values[i] = load_word(source, base + i, bytes);
      BEELINE_UNROLL
      for (std::uint32_t i = 0; i < at_once; ++i)
        if (base + i < words) store(word + base + i, values[i]);
    }
  }

 private:
  SignaledWord* const slot_;
  const std::uint64_t sequence_;
};

/// A short payload of whole words, which its poster loads before it has a slot.
class EarlyPayload {
 public:
  BEELINE_HOST_DEVICE void load(const void* payload, std::size_t bytes) {
    if (bytes > 8 * most_words || ((reinterpret_cast<std::uintptr_t>(payload) | bytes) & 7u) != 0) return;
    words_ = payload == nullptr ? 0 : static_cast<std::uint32_t>(bytes / 8);
    BEELINE_UNROLL
    for (std::uint32_t i = 0; i < most_words; ++i)
      if (i < words_) values_[i] = machine::load_as<std::uint64_t>(static_cast<const std::byte*>(payload) + 8 * i);
  }
  /// Stores the payload into the slot; returns false if it was not loaded.
  template <class Writer>
  BEELINE_HOST_DEVICE bool store(const Writer& writer, std::uint32_t word) const {
    if (words_ == 0) return false;
    BEELINE_UNROLL
    for (std::uint32_t i = 0; i < most_words; ++i)
      if (i < words_) writer.store(word + i, values_[i]);
    return true;
  }

 private:
  static constexpr std::uint32_t most_words = 8;
  std::uint64_t values_[most_words] = {};
  std::uint32_t words_ = 0;
};

/// A worker's own memory: the task that it runs, and the positions of its rings.
struct TaskScratch {
  alignas(task_alignment) std::uint64_t words[task_words];
  std::uint64_t heads[max_node_ranks];  ///< [members] number of tasks of each ring that have run
  std::byte* posters[max_node_ranks];   ///< [members] start of each member's slot in the address range; nullptr for
                                        ///< members on other nodes
  std::uint8_t unacknowledged[max_node_ranks];  ///< [members] number of tasks that have run since the last
                                                ///< acknowledgement

  [[nodiscard]] BEELINE_HOST_DEVICE TaskHeader header() const {
    TaskHeader header;
    std::memcpy(&header, words, sizeof header);
    return header;
  }
};

/// A worker's access to a slot. Each thread of the group loads different words: one load of a warp gets the whole of
/// most tasks.
template <class Group>
class TaskSlotReader {
 public:
  BEELINE_HOST_DEVICE TaskSlotReader(const Group& group, TaskScratch& scratch) : group_(group), scratch_(scratch) {}

  /// Loads this thread's word of a slot.
  ///   sequence  the word's signal if the task has arrived
  [[nodiscard]] BEELINE_HOST_DEVICE SignaledWord look(const SignaledWord* slot, std::uint64_t sequence) const {
    return load_task_word(&slot[task_word_position(group_.thread_rank())], sequence);
  }
  /// As `look`, with acquire order: if the word has arrived, the poster's earlier writes are visible. On a GPU this
  /// invalidates the multiprocessor's first-level cache, so it is for slots in which a task is likely.
  [[nodiscard]] BEELINE_HOST_DEVICE SignaledWord look_acquiring(const SignaledWord* slot,
                                                                std::uint64_t sequence) const {
    if constexpr (executor == DeviceKind::host) return look(slot, sequence);  // on CPUs each load acquires
    return load_signaled_acquired(&slot[task_word_position(group_.thread_rank())], task_words_are_whole);
  }
  /// Whether the whole task has arrived. If so, the task is in the scratch memory, visible to the whole group, and each
  /// thread has the header.
  ///   seen      word from `look` or `look_acquiring`
  ///   acquired  whether it is from `look_acquiring`
  BEELINE_HOST_DEVICE bool take(const SignaledWord* slot, const SignaledWord& seen, bool acquired,
                                std::uint64_t sequence, TaskHeader& header) const {
    const std::uint32_t thread = group_.thread_rank();
    std::uint32_t lost = seen.signal == sequence ? task_words : thread;
    if (group_.any(lost < task_header_words)) return false;
    scratch_.words[thread] = seen.value;
    if (group_.size() < task_header_words) {
      lost = load(slot, sequence, thread + group_.size(), task_header_words, lost);
      if (group_.any(lost < task_header_words)) return false;
    }
    header = header_of(seen);
    const std::uint32_t looked = group_.size() < task_header_words ? task_header_words : group_.size();
    lost = load(slot, sequence, thread + looked, header.words, lost);
    if (group_.any(lost < header.words)) return false;
    if (!acquired && header.is_ordered)
      acquire(slot);
    else
      group_.sync();
    return true;
  }

 private:
  /// The header. In a warp the first threads have its words, which is faster than the scratch memory.
  [[nodiscard]] BEELINE_HOST_DEVICE TaskHeader header_of([[maybe_unused]] const SignaledWord& seen) const {
    if constexpr (std::is_same_v<Group, Warp>) {
      std::uint64_t words[task_header_words];
      BEELINE_UNROLL
      for (std::uint32_t i = 0; i < task_header_words; ++i) words[i] = machine::from_lane(seen.value, i);
      TaskHeader header;
      std::memcpy(&header, words, sizeof header);
      return header;
    } else {
      group_.sync();
      return scratch_.header();
    }
  }
  /// Makes the poster's earlier writes visible to the whole group. Each thread has loaded a word of the slot, or has
  /// synchronized with threads that have.
  BEELINE_HOST_DEVICE void acquire([[maybe_unused]] const SignaledWord* slot) const {
#if BEELINE_ON_GPU
    machine::acquire_whole();
#else
    static_cast<void>(load_acquired(slot[task_word_position(0)].signal));  // on CPUs each load acquires
#endif
    group_.sync();
  }
  /// Loads words from `first` on. Returns the first word that has not arrived, or `lost` if that is smaller.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t load(const SignaledWord* slot, std::uint64_t sequence,
                                                       std::uint32_t first, std::uint32_t end,
                                                       std::uint32_t lost) const {
    BEELINE_NO_UNROLL
    for (std::uint32_t i = first; i < end; i += group_.size()) {
      const SignaledWord word = load_task_word(&slot[task_word_position(i)], sequence);
      scratch_.words[i] = word.value;
      if (word.signal != sequence && i < lost) lost = i;
    }
    return lost;
  }

  const Group& group_;
  TaskScratch& scratch_;
};

}  // namespace beeline::detail
