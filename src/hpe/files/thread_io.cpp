// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/thread.hpp"
#include "hpe/files/block_io.hpp"

namespace beeline::hpe::detail {

namespace {

/// A thread that hangs in a system call cannot be ended, so threads share the ownership of this.
struct CallQueues {
  CallFunction carry_out;
  std::mutex mutex;
  std::condition_variable posted, done;
  std::deque<BlockCall> calls;
  std::deque<BlockResult> results;
  std::size_t running = 0;
  bool closing = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      posted.wait(lock, [this] { return closing || !calls.empty(); });
      if (calls.empty()) return;
      const BlockCall call = calls.front();
      calls.pop_front();
      ++running;
      lock.unlock();
      const BlockResult result{call.tag, carry_out(call)};
      lock.lock();
      --running;
      results.push_back(result);
      done.notify_all();
    }
  }
};

class ThreadIo final : public BlockIo {
 public:
  ThreadIo(unsigned depth, CallFunction carry_out) : most_threads_(depth) { queues_->carry_out = std::move(carry_out); }
  ~ThreadIo() override {
    {
      const std::lock_guard lock(queues_->mutex);
      queues_->closing = true;
    }
    queues_->posted.notify_all();
    for (std::thread& each : threads_) each.join();
  }

  void start(const BlockCall& call) override {
    const std::lock_guard lock(queues_->mutex);
    queues_->calls.push_back(call);
    ++unannounced_;
    if (threads_.size() < most_threads_ && queues_->calls.size() + queues_->running > threads_.size()) add_thread();
  }

  /// Wakes threads for several calls by one system call.
  void submit() override {
    if (unannounced_ == 1)
      queues_->posted.notify_one();
    else if (unannounced_ > 1)
      queues_->posted.notify_all();
    unannounced_ = 0;
  }

  bool await(BlockResult& result, std::int64_t longest_ns, unsigned /*wanted*/) override {
    submit();
    std::unique_lock lock(queues_->mutex);
    const auto is_there = [this] { return !queues_->results.empty(); };
    if (!queues_->done.wait_for(lock, std::chrono::nanoseconds(longest_ns), is_there)) return false;
    result = queues_->results.front();
    queues_->results.pop_front();
    return true;
  }

  bool cancel(std::int64_t longest_ns) override {
    std::unique_lock lock(queues_->mutex);
    queues_->calls.clear();
    const auto is_over = [this] { return queues_->running == 0; };
    const bool is_cancelled = queues_->done.wait_for(lock, std::chrono::nanoseconds(longest_ns), is_over);
    queues_->results.clear();
    return is_cancelled;
  }

 private:
  /// If the system refuses a thread, those that are there carry out its calls, too.
  void add_thread() try {
    const beeline::detail::AllSignalsBlocked blocked;  // signals are for the program's threads
    threads_.push_back(
        beeline::detail::start_thread_for("reading and writing files", [queues = queues_] { queues->serve(); }));
  } catch (const Error& error) {
    if (threads_.empty()) throw;
    static std::atomic<bool> is_said{false};
    if (is_said.exchange(true)) return;
    log(LogLevel::warning,
        fmt::format("{} of up to {} threads read and write a file: {}", threads_.size(), most_threads_, error.what()));
  }

  const unsigned most_threads_;
  const std::shared_ptr<CallQueues> queues_ = std::make_shared<CallQueues>();
  std::vector<std::thread> threads_;
  std::size_t unannounced_ = 0;  ///< calls for which no thread was woken
};

}  // namespace

std::int64_t carry_out_call(const BlockCall& call) {
  const auto offset = static_cast<off_t>(call.offset);
  ssize_t result = 0;
  switch (call.kind) {
    case BlockCall::Kind::read:
      result = ::pread(call.descriptor, call.memory, call.bytes, offset);
      break;
    case BlockCall::Kind::write:
      result = ::pwrite(call.descriptor, call.memory, call.bytes, offset);
      break;
    case BlockCall::Kind::sync_data:
      result = ::fdatasync(call.descriptor);
      break;
    case BlockCall::Kind::sync:
      result = ::fsync(call.descriptor);
      break;
  }
  return result < 0 ? -errno : result;
}

std::unique_ptr<BlockIo> make_thread_io(unsigned depth, CallFunction carry_out) {
  return std::make_unique<ThreadIo>(depth, std::move(carry_out));
}

std::string no_uring_reason() {
  try {
    static_cast<void>(make_uring_io(1));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::unique_ptr<BlockIo> make_block_io(unsigned depth) {
  try {
    return make_uring_io(depth);
  } catch (const Error& error) {
    static std::atomic<bool> is_said{false};
    if (!is_said.exchange(true)) log(LogLevel::warning, std::string("threads read and write files: ") + error.what());
    return make_thread_io(depth);
  }
}

}  // namespace beeline::hpe::detail
