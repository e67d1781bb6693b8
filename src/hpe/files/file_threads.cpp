// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/file_threads.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "core/fork.hpp"
#include "core/thread.hpp"

namespace beeline::hpe::detail {

namespace {

struct FileThreads {
  std::mutex mutex;
  std::condition_variable posted;
  std::deque<std::function<void()>> work;
  std::size_t idle = 0;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      ++idle;
      posted.wait(lock, [this] { return !work.empty(); });
      --idle;
      const std::function<void()> mine = std::move(work.front());
      work.pop_front();
      lock.unlock();
      mine();
      lock.lock();
    }
  }
};

/// The threads of this process, which never end; a forked process has none of its parent's.
FileThreads& file_threads() {
  static std::mutex mutex;
  static FileThreads* threads = nullptr;
  static std::uint32_t depth = 0;
  const std::lock_guard lock(mutex);
  if (threads == nullptr || depth != beeline::detail::fork_depth()) {
    threads = new FileThreads;
    depth = beeline::detail::fork_depth();
  }
  return *threads;
}

}  // namespace

void run_on_file_thread(std::function<void()> work) {
  FileThreads& threads = file_threads();
  {
    const std::lock_guard lock(threads.mutex);
    if (threads.work.size() >= threads.idle) {
      const beeline::detail::AllSignalsBlocked blocked;
      beeline::detail::start_thread_for("files of a GPU's stream", [&threads] { threads.serve(); }).detach();
    }
    threads.work.push_back(std::move(work));
  }
  threads.posted.notify_one();
}

}  // namespace beeline::hpe::detail
