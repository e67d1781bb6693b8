// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Processes that fork while they use the library.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace beeline::detail {

/// Number of forks between the first process that used the library and this one: an object whose depth differs from the
/// current depth was copied from a parent process.
[[nodiscard]] std::uint32_t fork_depth() noexcept;

/// While it exists, the calling thread makes a value of the process: other threads make none, and do not fork.
class MakingValue {
 public:
  MakingValue();
  ~MakingValue();
  MakingValue(const MakingValue&) = delete;
  MakingValue& operator=(const MakingValue&) = delete;
};

/// A value of the process, made at its first use; never destroyed, since it may be used while static objects end. A
/// child that is forked while another thread makes a static variable of a function waits for that variable for ever,
/// so `fork` waits for these values. Some values open libraries: a child that was forked meanwhile can open none,
/// since glibc's list of libraries is inconsistent there. Is itself a static variable, with a constant initializer.
template <class T>
class ProcessValue {
 public:
  constexpr ProcessValue() = default;
  ProcessValue(const ProcessValue&) = delete;
  ProcessValue& operator=(const ProcessValue&) = delete;
  /// Throws what `make` throws; the next call makes the value then.
  ///   make  returns the value; waits for no other thread that may fork or make values, and is called without the
  ///         mutexes of ForkHandlers
  template <class Make>
  [[nodiscard]] T& get(Make make) {
    if (T* const made = value_.load(std::memory_order_acquire)) return *made;
    const MakingValue making;
    if (T* const made = value_.load(std::memory_order_acquire)) return *made;
    T* const made = new T(make());
    value_.store(made, std::memory_order_release);
    return *made;
  }

 private:
  std::atomic<T*> value_{nullptr};
};

/// Calls a function in every child that this process forks while the object exists. The function runs inside `fork`,
/// when the child has one thread: it makes system calls and stores, and takes no lock. Functions run in the order in
/// which their handlers were made.
class ForkHandler {
 public:
  ///   held  locked during forks, also of the child's children, so that each child finds the guarded data consistent;
  ///         used by one handler at a time, and its holders neither fork nor make handlers or values of the process;
  ///         nullptr: none
  explicit ForkHandler(std::function<void()> in_child, std::mutex* held = nullptr);
  ~ForkHandler();
  ForkHandler(const ForkHandler&) = delete;
  ForkHandler& operator=(const ForkHandler&) = delete;

 private:
  friend class ForkHandlers;
  const std::function<void()> in_child_;
  std::mutex* const held_;
  const std::uint32_t depth_ = fork_depth();
};

/// Destroys an object in the process that made it. A forked process does not destroy its copy, since the object refers
/// to threads of the parent.
struct DeleteInOwnProcess {
  std::uint32_t depth = fork_depth();
  [[nodiscard]] bool is_own() const noexcept { return depth == fork_depth(); }
  template <class T>
  void operator()(T* object) const {
    if (is_own()) delete object;
  }
};
template <class T>
using ProcessOwned = std::unique_ptr<T, DeleteInOwnProcess>;

}  // namespace beeline::detail
