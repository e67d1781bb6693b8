// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a CPU thread does between two polls of a wait.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// How CPU threads wait in operations, for streams and for events. Kernels on GPUs always spin. The deadline does not
/// depend on the policy. Source: seed 000, listing 5.8, which sleeps between polls to save energy.
enum class WaitPolicy : std::uint32_t {
  automatic,  ///< spin (if every rank can have a core of its own), then yield, then sleep; waits for a host rank's
              ///< stream only sleep
  spin,       ///< never yield the core: the shortest latency, with a core at full power
  yield,      ///< spin, then yield the core between polls
  sleep,      ///< sleep for the poll period between two polls
  event       ///< sleep until the stream signals its end; for words in memory the same as `sleep`
};
inline constexpr std::uint32_t wait_policies = 5;

/// The policy's name as it appears in configuration and JSON.
[[nodiscard]] const char* name(WaitPolicy policy) noexcept;

/// How a CPU thread polls. Packed into one word, since contexts are kernel arguments, and GPUs do not read this word.
class Polling {
 public:
  Polling() = default;
  /// The policy `automatic`, which spins for `spins` polls.
  BEELINE_HOST_DEVICE constexpr Polling(std::uint32_t spins) : Polling(WaitPolicy::automatic, spins) {}
  /// number automatic, yield: polls before the core is yielded; sleep, event: microseconds between polls
  BEELINE_HOST_DEVICE constexpr Polling(WaitPolicy policy, std::uint32_t number)
      : word_(static_cast<std::uint32_t>(policy) << shift | number) {}

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr WaitPolicy policy() const {
    return static_cast<WaitPolicy>(word_ >> shift);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t number() const { return word_ & largest; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool sleeps_at_once() const { return policy() >= WaitPolicy::sleep; }
  /// Whether the thread yields the core at this poll, so that a check of the clock adds no cost.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool gives_core_away(std::uint32_t poll) const {
    return sleeps_at_once() || (policy() != WaitPolicy::spin && poll >= number());
  }

  static constexpr std::uint32_t shift = 29, largest = (std::uint32_t{1} << shift) - 1;

 private:
  std::uint32_t word_;  // without a value: contexts may be in a kernel's shared memory
};

namespace detail {

/// Called when a CPU thread yields its core in a wait.
class WaitListener {
 public:
  virtual void on_wait() noexcept = 0;

 protected:
  ~WaitListener() = default;
};
/// Sets this thread's listener (nullptr: none), and returns the previous listener.
WaitListener* listen_to_waits(WaitListener* next) noexcept;
/// Calls this thread's listener, if it has one.
void tell_wait() noexcept;

/// Work of an engine that waiting CPU threads of any rank do, so that the operation for which they wait need not wait
/// for another thread to run. A short wait does no such work.
class WaitWork {
 public:
  /// Does the work. Returns whether there was any.
  virtual bool work() noexcept = 0;

 protected:
  ~WaitWork() = default;
};
void add_wait_work(WaitWork& work);
/// Sets whether this thread's waits do such work (at first: true), and returns the previous value. A thread that keeps
/// memory mapped by the lock of another thread must not: the work may wait for a thread that unmaps.
bool allow_wait_work(bool allowed) noexcept;
/// Removes `work`; returns when no thread runs it any more.
void remove_wait_work(WaitWork& work);
/// Does all registered work that no other thread is doing. Returns whether the caller is to poll again at once: there
/// was work, or this thread had some a short time ago.
bool do_wait_work() noexcept;
/// As above, for a wait of this thread that yields its core; works only at some of the yields. If previous waits found
/// no work, it starts later: such waits are probably for ranks of the same node, and would take longer with this work.
/// Returns whether there was work.
///   yields  number of yields of this wait until now
bool do_wait_work(std::uint32_t yields) noexcept;

/// Long waits of a CPU thread ask this object whether to end, so that a program can handle its signals before the wait
/// would end.
class WaitInterrupt {
 public:
  /// Whether the wait has to end now. It then returns `Status::timeout`, or `aborted` if this function has aborted the
  /// wait's team. Must not block on a lock.
  virtual bool ends_wait(std::uint64_t now_ns) noexcept = 0;

 protected:
  ~WaitInterrupt() = default;
};
/// Sets this thread's interrupt (nullptr: none), and returns the previous interrupt.
WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept;
/// The result of `ends_wait` of this thread's `WaitInterrupt`; false if it has none.
[[nodiscard]] bool is_interrupted(std::uint64_t now_ns) noexcept;

/// Time in nanoseconds after which a wait begins to ask its `WaitInterrupt`, so that short waits have no cost.
inline constexpr std::uint64_t interruptible_from_ns = 10'000'000;

}  // namespace detail

}  // namespace beeline
