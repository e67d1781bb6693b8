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
  automatic,  ///< spin if every rank may have a core of its own, then yield, then sleep; for a host rank's stream,
              ///< sleep
  spin,       ///< never give the core away: the fastest, with a core at full power
  yield,      ///< spin, then yield the core between polls
  sleep,      ///< sleep for the poll period between two polls
  event       ///< sleep until the stream signals its end; for words in memory the same as `sleep`
};
inline constexpr std::uint32_t wait_policies = 5;

/// The policy's name as it appears in configuration and JSON.
[[nodiscard]] const char* name(WaitPolicy policy) noexcept;

/// How a CPU thread polls. Packed in one word, since contexts are kernel arguments, and GPUs do not read this.
class Polling {
 public:
  Polling() = default;
  /// The policy `automatic`, which spins for `spins` polls.
  BEELINE_HOST_DEVICE constexpr Polling(std::uint32_t spins) : Polling(WaitPolicy::automatic, spins) {}
  /// number  automatic, yield: polls before the core is given away; sleep, event: microseconds between polls
  BEELINE_HOST_DEVICE constexpr Polling(WaitPolicy policy, std::uint32_t number)
      : word_(static_cast<std::uint32_t>(policy) << shift | number) {}

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr WaitPolicy policy() const {
    return static_cast<WaitPolicy>(word_ >> shift);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t number() const { return word_ & largest; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool sleeps_at_once() const { return policy() >= WaitPolicy::sleep; }
  /// Whether the core is given away at this poll, so that another look at the clock costs nothing.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool gives_core_away(std::uint32_t poll) const {
    return sleeps_at_once() || (policy() != WaitPolicy::spin && poll >= number());
  }

  static constexpr std::uint32_t shift = 29, largest = (std::uint32_t{1} << shift) - 1;

 private:
  std::uint32_t word_;  // without a value: contexts may lie in a kernel's shared memory
};

namespace detail {

/// Called when a CPU thread yields its core in a wait.
class WaitListener {
 public:
  virtual void on_wait() noexcept = 0;

 protected:
  ~WaitListener() = default;
};
/// Sets this thread's listener (nullptr: none), and returns the one before.
WaitListener* listen_to_waits(WaitListener* next) noexcept;
/// Calls this thread's listener, if it has one.
void tell_wait() noexcept;

/// Work that waiting CPU threads of any rank do: that of an engine, so that the operation for which they wait needs no
/// other thread to run first. A short wait does none.
class WaitWork {
 public:
  /// Whether there was any.
  virtual bool work() noexcept = 0;

 protected:
  ~WaitWork() = default;
};
void add_wait_work(WaitWork& work);
/// Removes `work`; returns once no thread runs it any more.
void remove_wait_work(WaitWork& work);
/// Does all registered work that no other thread does. Returns whether there was any.
bool do_wait_work() noexcept;
/// The same at some of the times at which a wait of this thread yields its core. The first time in a wait comes later
/// if the waits before found no work: they are likely to be for ranks of the same node, and work would make them
/// longer.
///   yields  of this wait so far
bool do_wait_work(std::uint32_t yields) noexcept;

/// Asked by waits of a CPU thread that last for a while, so that a program handles its signals before the wait ends.
class WaitInterrupt {
 public:
  /// Whether the wait has to end now. It then returns `Status::timeout`, or `aborted` if this call has aborted its
  /// team. Must not block on a lock.
  virtual bool ends_wait(std::uint64_t now_ns) noexcept = 0;

 protected:
  ~WaitInterrupt() = default;
};
/// Sets this thread's interrupt (nullptr: none), and returns the one before.
WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept;
/// Asks this thread's `WaitInterrupt`, if it has one.
[[nodiscard]] bool is_interrupted(std::uint64_t now_ns) noexcept;

/// Time in nanoseconds after which a wait begins to ask, so that short waits have no cost.
inline constexpr std::uint64_t interruptible_from_ns = 10'000'000;

}  // namespace detail

}  // namespace beeline
