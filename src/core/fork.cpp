// SPDX-License-Identifier: Apache-2.0
#include "core/fork.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace beeline::detail {

namespace {

std::mutex making_values;
thread_local int depth_of_making = 0;  ///< values of values, and a value that forks while it is made

void begin_making() {
  if (depth_of_making == 0) making_values.lock();
  ++depth_of_making;
}
void end_making() {
  if (--depth_of_making == 0) making_values.unlock();
}

}  // namespace

MakingValue::MakingValue() { begin_making(); }
MakingValue::~MakingValue() { end_making(); }

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
  [[nodiscard]] std::uint32_t depth() const { return depth_; }

 private:
  /// Values first: while one is made, handlers are added and their mutexes taken.
  void lock() {
    begin_making();
    mutex_.lock();
    for (const ForkHandler* handler : handlers_)
      if (handler->held_ != nullptr) handler->held_->lock();
  }
  void unlock() {
    for (const ForkHandler* handler : handlers_)
      if (handler->held_ != nullptr) handler->held_->unlock();
    mutex_.unlock();
    end_making();
  }
  void begin_child() {
    const std::uint32_t depth_of_parent = depth_++;
    for (const ForkHandler* handler : handlers_)
      if (handler->depth_ == depth_of_parent) handler->in_child_();
    unlock();
  }

  std::mutex mutex_;
  std::vector<ForkHandler*> handlers_;
  std::uint32_t depth_ = 0;  ///< changes in a child, while that has one thread
};

namespace {
/// Before the program has threads that could fork meanwhile.
[[maybe_unused]] const ForkHandlers& made_early = ForkHandlers::instance();
}  // namespace

std::uint32_t fork_depth() noexcept { return ForkHandlers::instance().depth(); }

ForkHandler::ForkHandler(std::function<void()> in_child, std::mutex* held)
    : in_child_(std::move(in_child)), held_(held) {
  ForkHandlers::instance().add(this);
}
ForkHandler::~ForkHandler() { ForkHandlers::instance().remove(this); }

}  // namespace beeline::detail
