// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Words for which streams wait, and which threads of the CPU set; or the other way round.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace beeline::hpe::detail {

/// A word whose value only grows. Its memory is never freed, and belongs to another word once this one ends.
class AwaitedWord {
 public:
  ///   is_pinned  GPUs' streams wait for it
  /// Throws what pinning memory throws.
  explicit AwaitedWord(bool is_pinned);
  ~AwaitedWord();
  AwaitedWord(const AwaitedWord&) = delete;
  AwaitedWord& operator=(const AwaitedWord&) = delete;

  [[nodiscard]] std::uint64_t* address() const { return address_; }
  /// The next value to wait for, from 1 on. One thread at a time calls it.
  [[nodiscard]] std::uint64_t next_value() { return ++value_; }
  /// Ends the waits for `value`. Values are stored in their order.
  void store(std::uint64_t value) const;
  /// Whether a stream has stored `value` or a later one. Calls nothing of a device.
  [[nodiscard]] bool has(std::uint64_t value) const {
    return std::atomic_ref(*address_).load(std::memory_order_acquire) >= value;
  }

 private:
  const bool is_pinned_;
  std::uint64_t* address_;
  std::uint64_t value_;
};

/// The words for which one stream waits: one for each other stream, which stores its values in order. Any thread may
/// use it.
class AwaitedWords {
 public:
  explicit AwaitedWords(bool is_pinned) : is_pinned_(is_pinned) {}
  /// The word that `storer`, a stream's identity, stores. A storer with that of one that has ended continues its word.
  [[nodiscard]] std::shared_ptr<AwaitedWord> of(const void* storer);
  /// Keeps the words' memory from other words for ever: it may still be written, or the process is a forked one.
  void leave() noexcept;

 private:
  using Words = std::map<const void*, std::shared_ptr<AwaitedWord>>;
  const bool is_pinned_;
  std::mutex mutex_;
  std::unique_ptr<Words> words_ = std::make_unique<Words>();
};

}  // namespace beeline::hpe::detail
