// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Processes that fork while they use the library.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace beeline::detail {

/// Number of forks between the first process that used the library and this one: an object whose depth differs from the
/// current depth was copied from a parent process.
[[nodiscard]] std::uint32_t fork_depth() noexcept;

/// Calls a function in every child that is forked while this object exists. The function runs inside `fork`, when the
/// child has one thread: it makes system calls and stores, and takes no lock. Functions run in the order in which their
/// handlers were made.
class ForkHandler {
 public:
  ///   held  locked during the fork, so that the child finds the guarded data consistent; used by one handler at a
  ///         time, and its holders neither fork nor make handlers; nullptr: none
  explicit ForkHandler(std::function<void()> in_child, std::mutex* held = nullptr);
  ~ForkHandler();
  ForkHandler(const ForkHandler&) = delete;
  ForkHandler& operator=(const ForkHandler&) = delete;

 private:
  friend class ForkHandlers;
  const std::function<void()> in_child_;
  std::mutex* const held_;
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
