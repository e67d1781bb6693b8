// SPDX-License-Identifier: Apache-2.0
#include "gaspi/life.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "gaspi/call.hpp"
#include "gaspi/service.hpp"

namespace beeline::gaspi {

/// The one process. Never destroyed by itself: other threads may be in calls when the program exits.
class Life {
 public:
  static Life& instance() {
    static Life* const life = new Life;
    return *life;
  }

  [[nodiscard]] bool has_begun() {
    const std::lock_guard lock(mutex_);
    return process_ != nullptr;
  }

  [[nodiscard]] Result begin(std::uint64_t timeout_ms) {
    const std::lock_guard lock(mutex_);
    if (Process::running() != nullptr) refuse(GASPI_ERR_INITED, "the process is initialized already");
    if (process_ == nullptr) {
      stop_at_exit();
      leave_children_out();
      process_.reset(new Process(make_extensions()));
    }
    try {
      if (process_->service().join(timeout_ms) == Result::timeout) return Result::timeout;
    } catch (...) {
      process_.reset();
      throw;
    }
    Process::running_.store(process_.get(), std::memory_order_release);
    return Result::success;
  }

  [[nodiscard]] Result end(std::uint64_t timeout_ms) {
    const std::lock_guard lock(mutex_);
    Process* const process = Process::running();
    if (process == nullptr) refuse(GASPI_ERR_NOINIT, "before gaspi_proc_init or after gaspi_proc_term");
    try {
      if (process->service().perform({.action = Action::leave}, {.what = "the termination of all ranks"}, timeout_ms) ==
          Result::timeout)
        return Result::timeout;
    } catch (...) {
      finish();
      throw;
    }
    finish();
    return Result::success;
  }

 private:
  void finish() {
    Process::running_.store(nullptr, std::memory_order_release);
    if (process_->service().end_calls()) return process_.reset();
    process_->log("a call of another thread has not ended with the termination: what it uses stays");
    static_cast<void>(process_.release());
  }

  /// Ends the service thread before the libraries below it are torn down, if the program exits without a termination.
  static void stop_at_exit() {
    static const bool once = [] {
      std::atexit([] { instance().process_.reset(); });
      return true;
    }();
    static_cast<void>(once);
  }

  /// A child of `fork` has no service thread: it is no rank, calls in it are refused, and its end waits for no thread.
  static void leave_children_out() {
    static const bool once = [] {
      return ::pthread_atfork(nullptr, nullptr, [] {
               Process::running_.store(nullptr, std::memory_order_release);
               instance().of_parent_ = instance().process_.release();
             }) == 0;
    }();
    static_cast<void>(once);
  }

  std::mutex mutex_;
  std::unique_ptr<Process> process_;
  Process* of_parent_ = nullptr;  ///< in a child of `fork`
};

bool has_begun() { return Life::instance().has_begun(); }
Result begin_process(std::uint64_t timeout_ms) { return Life::instance().begin(timeout_ms); }
Result end_process(std::uint64_t timeout_ms) { return Life::instance().end(timeout_ms); }

}  // namespace beeline::gaspi
