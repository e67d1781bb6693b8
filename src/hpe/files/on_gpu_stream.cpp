// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/on_gpu_stream.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/files/file_threads.hpp"
#include "hpe/stream_state.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

namespace {

/// A word in pinned memory for which a stream waits. Its value only grows, so that it may be used again.
struct HeldWord {
  std::uint64_t* address = nullptr;
  std::uint64_t value = 0;  ///< that the next stream waits for
};

/// Words that no stream waits for. They are never freed: a stream may know them for longer than their use.
class HeldWords {
 public:
  static HeldWords& of_process() {
    static HeldWords& words = *new HeldWords;
    return words;
  }
  HeldWord take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) add_page();
    HeldWord word = idle_.back();
    idle_.pop_back();
    ++word.value;
    return word;
  }
  void give_back(const HeldWord& word) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(word);
  }

 private:
  void add_page() {
    constexpr std::size_t bytes = 4096, spacing = 64;
    std::byte* const page = (new PinnedMemory(bytes))->data();
    for (std::size_t at = 0; at < bytes; at += spacing)
      idle_.push_back({reinterpret_cast<std::uint64_t*>(page + at), 0});
  }

  std::mutex mutex_;
  std::vector<HeldWord> idle_;
};

/// The stream, its transfer and the thread share this.
struct HeldTransfer {
  std::shared_ptr<FileTransfer> transfer;
  std::unique_ptr<Event> earlier;  ///< work of the stream before the transfer
  HeldWord word;
  std::exception_ptr failure;  ///< written before the word, read by the stream's callback behind it

  void await_earlier() const {
    static const std::int64_t longest_ns = Config::from_environment().stream_deadline_ns;
    const beeline::detail::Deadline deadline(longest_ns);
    while (!earlier->done()) {
      require(!deadline.passed(), Status::deadline, "a file's transfer waited for earlier work of its stream");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void run() {
    try {
      await_earlier();
      transfer->run();
    } catch (...) {
      failure = std::current_exception();
    }
    transfer.reset();
    std::atomic_ref(*word.address).store(word.value, std::memory_order_release);
  }
};

}  // namespace

void run_on_gpu_stream(std::shared_ptr<FileTransfer> transfer, Stream& stream) {
  const auto held = std::make_shared<HeldTransfer>();
  held->transfer = std::move(transfer);
  held->word = HeldWords::of_process().take();
  stream.state().enqueue_own([&](beeline::Stream& own) {
    held->earlier = own.make_event();
    own.record(*held->earlier);
    run_on_file_thread([held] { held->run(); });
    own.wait_signal(held->word.address, held->word.value);
    own.enqueue([held] {
      HeldWords::of_process().give_back(held->word);
      if (held->failure) std::rethrow_exception(held->failure);
    });
  });
}

}  // namespace beeline::hpe::detail
