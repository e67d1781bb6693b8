// SPDX-License-Identifier: Apache-2.0
#include "core/fork.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace beeline::detail {

/// All handlers of the process. The mutex is held during a fork, so that a child finds the list whole.
class ForkHandlers {
 public:
  static ForkHandlers& instance() {
    // Never destroyed: a program may fork while it ends.
    static ForkHandlers* const the_only = [] {
      auto* made = new ForkHandlers;
      ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                       [] { instance().begin_child(); });
      return made;
    }();
    return *the_only;
  }

  void add(ForkHandler* handler) {
    const std::lock_guard lock(mutex_);
    handlers_.push_back(handler);
  }
  void remove(ForkHandler* handler) {
    const std::lock_guard lock(mutex_);
    std::erase(handlers_, handler);
  }
  [[nodiscard]] std::uint32_t depth() const { return depth_.load(std::memory_order_relaxed); }

 private:
  void begin_child() {
    depth_.fetch_add(1, std::memory_order_relaxed);
    for (const ForkHandler* handler : handlers_) handler->in_child_();
    handlers_.clear();  // a child of the child finds all of it done
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<ForkHandler*> handlers_;
  std::atomic<std::uint32_t> depth_{0};
};

std::uint32_t fork_depth() noexcept { return ForkHandlers::instance().depth(); }

ForkHandler::ForkHandler(std::function<void()> in_child) : in_child_(std::move(in_child)) {
  ForkHandlers::instance().add(this);
}
ForkHandler::~ForkHandler() { ForkHandlers::instance().remove(this); }

bool make_private(void* address, std::size_t bytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(address) + bytes + page - 1) / page * page;
  auto* const there = reinterpret_cast<void*>(begin);
  void* const copy = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, there, end - begin);
  return ::mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there;
}

}  // namespace beeline::detail
