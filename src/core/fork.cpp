// SPDX-License-Identifier: Apache-2.0
#include "core/fork.hpp"

#include <pthread.h>

#include <atomic>
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
      ::pthread_atfork([] { instance().lock(); }, [] { instance().unlock(); }, [] { instance().begin_child(); });
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
  void lock() {
    mutex_.lock();
    for (const ForkHandler* handler : handlers_)
      if (handler->held_ != nullptr) handler->held_->lock();
  }
  void unlock() {
    for (const ForkHandler* handler : handlers_)
      if (handler->held_ != nullptr) handler->held_->unlock();
    mutex_.unlock();
  }
  void begin_child() {
    depth_.fetch_add(1, std::memory_order_relaxed);
    for (const ForkHandler* handler : handlers_) handler->in_child_();
    unlock();
    handlers_.clear();  // for a child of the child nothing remains to be done
  }

  std::mutex mutex_;
  std::vector<ForkHandler*> handlers_;
  std::atomic<std::uint32_t> depth_{0};
};

std::uint32_t fork_depth() noexcept { return ForkHandlers::instance().depth(); }

ForkHandler::ForkHandler(std::function<void()> in_child, std::mutex* held)
    : in_child_(std::move(in_child)), held_(held) {
  ForkHandlers::instance().add(this);
}
ForkHandler::~ForkHandler() { ForkHandlers::instance().remove(this); }

}  // namespace beeline::detail
