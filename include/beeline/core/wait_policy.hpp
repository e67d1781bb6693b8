// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a CPU thread does between two looks at what it waits for.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// Waits of the host: those of CPU threads in operations, and for streams and events. Kernels on GPUs always spin. The
/// deadline is the same with all of them. Source: seed 000, listing 5.8, which sleeps between polls to save energy.
enum class WaitPolicy : std::uint32_t {
  automatic,  ///< spin while every rank may have a core, then yield, then sleep; for a host rank's stream, asleep
  spin,       ///< never give the core away: quickest, and a core at full power
  yield,      ///< spin, then yield the core between polls
  sleep,      ///< for the poll period between any two polls
  event       ///< sleep until the stream signals its end; waits for words in memory are as `sleep`
};
inline constexpr std::uint32_t wait_policies = 5;

/// The policy's name as it appears in configuration and JSON.
[[nodiscard]] const char* name(WaitPolicy policy) noexcept;

/// How a CPU thread polls, in one word: contexts are kernels' arguments, and GPUs do not read it.
class Polling {
 public:
  Polling() = default;
  /// The policy `automatic`, which spins for so many polls.
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

/// Is told when a CPU thread yields its core in a wait.
class WaitListener {
 public:
  virtual void on_wait() noexcept = 0;

 protected:
  ~WaitListener() = default;
};
/// Makes it this thread's (nullptr: none). Returns the one that was before.
WaitListener* listen_to_waits(WaitListener* next) noexcept;
/// Tells this thread's, if it has one, and does what work there is.
void tell_wait() noexcept;

/// Work that CPU threads do while they wait, whichever rank's they are: an engine's, so that what is waited for needs
/// no other thread to run first.
class WaitWork {
 public:
  virtual void work() noexcept = 0;

 protected:
  ~WaitWork() = default;
};
void add_wait_work(WaitWork& work);
/// Returns when no thread does it any more.
void remove_wait_work(WaitWork& work);

/// Asked by a CPU thread's waits once they have lasted for a while: a program's signals are not held up until they end.
class WaitInterrupt {
 public:
  /// Whether the wait is to end now: with `Status::timeout`, unless this has aborted its team. Holds up no lock's
  /// owner.
  virtual bool ends_wait(std::uint64_t now_ns) noexcept = 0;

 protected:
  ~WaitInterrupt() = default;
};
/// Makes it this thread's (nullptr: none). Returns the one that was before.
WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept;
/// Asks this thread's, if it has one.
[[nodiscard]] bool is_interrupted(std::uint64_t now_ns) noexcept;

/// How long a wait has lasted before it asks: what is short pays nothing.
inline constexpr std::uint64_t interruptible_from_ns = 10'000'000;

}  // namespace detail

}  // namespace beeline
