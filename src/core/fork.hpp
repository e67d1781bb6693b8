// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Processes that fork while they use the library.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace beeline::detail {

/// Number of forks between the first process that used the library and this one: an object of another depth than the
/// current one was copied from a parent process.
[[nodiscard]] std::uint32_t fork_depth() noexcept;

/// Calls a function in every child that is forked while this object exists. The function runs inside `fork`, when the
/// child has one thread: it makes system calls and stores, and takes no lock.
class ForkHandler {
 public:
  explicit ForkHandler(std::function<void()> in_child);
  ~ForkHandler();
  ForkHandler(const ForkHandler&) = delete;
  ForkHandler& operator=(const ForkHandler&) = delete;

 private:
  friend class ForkHandlers;
  const std::function<void()> in_child_;
};

/// Destroys an object in the process that made it. A forked process leaves its copy as it is: the threads that the
/// object refers to are the parent's.
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

/// Gives this process private copies of the pages that hold `bytes` at `address`, which it shared with others so far.
/// Returns whether the system permits it.
[[nodiscard]] bool make_private(void* address, std::size_t bytes) noexcept;

}  // namespace beeline::detail
