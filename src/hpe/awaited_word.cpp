// SPDX-License-Identifier: Apache-2.0
#include "hpe/awaited_word.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "memory/host_buffer.hpp"

namespace beeline::hpe::detail {

namespace {

struct IdleWord {
  std::uint64_t* address;
  std::uint64_t value;  ///< the last that a stream has waited for
};

/// Words that no stream waits for, of one kind of memory.
class IdleWords {
 public:
  static IdleWords& of_process(bool is_pinned) {
    static IdleWords& pageable = *new IdleWords(false);
    static IdleWords& pinned = *new IdleWords(true);
    return is_pinned ? pinned : pageable;
  }
  IdleWord take() {
    {
      const std::lock_guard lock(mutex_);
      if (!words_.empty()) return take_last();
    }
    // Without the mutex: CUDA may pin memory only after its threads have given back words.
    auto page = std::make_unique<HostBuffer>(page_bytes, is_pinned_, "for words that streams wait for");
    const std::lock_guard lock(mutex_);
    add(std::move(page));
    return take_last();
  }
  void give_back(const IdleWord& word) {
    const std::lock_guard lock(mutex_);
    words_.push_back(word);
  }

 private:
  explicit IdleWords(bool is_pinned) : is_pinned_(is_pinned) {}
  IdleWord take_last() {
    const IdleWord word = words_.back();
    words_.pop_back();
    return word;
  }
  void add(std::unique_ptr<HostBuffer> page) {
    constexpr std::size_t spacing = 64;  // a cache line each
    for (std::size_t at = 0; at < page_bytes; at += spacing)
      words_.push_back({reinterpret_cast<std::uint64_t*>(page->data() + at), 0});
    pages_.push_back(std::move(page));
  }

  static constexpr std::size_t page_bytes = 4096;
  const bool is_pinned_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HostBuffer>> pages_;
  std::vector<IdleWord> words_;
};

}  // namespace

AwaitedWord::AwaitedWord(bool is_pinned) : is_pinned_(is_pinned) {
  const IdleWord word = IdleWords::of_process(is_pinned).take();
  address_ = word.address;
  value_ = word.value;
}

AwaitedWord::~AwaitedWord() { IdleWords::of_process(is_pinned_).give_back({address_, value_}); }

void AwaitedWord::store(std::uint64_t value) const {
  std::atomic_ref(*address_).store(value, std::memory_order_release);
}

std::shared_ptr<AwaitedWord> AwaitedWords::of(const void* storer) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<AwaitedWord>& word = (*words_)[storer];
  if (word == nullptr) word = std::make_shared<AwaitedWord>(is_pinned_);
  return word;
}

void AwaitedWords::leave() noexcept { static_cast<void>(words_.release()); }

}  // namespace beeline::hpe::detail
