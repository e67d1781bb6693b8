// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls that block without Python's lock, and the signal handlers that run meanwhile.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "beeline/core/wait_policy.hpp"
#include "beeline/host/world.hpp"

namespace beeline::python {

/// A blocking call of this thread. If it is Python's main thread, signal handlers run during its waits, at most about
/// 50 ms after the signal. An exception of a handler ends the call: as a time-out does, or by aborting its team.
class BlockingCall final : detail::WaitInterrupt {
 public:
  /// Throws invalid_argument in a handler that runs during another call's wait.
  ///   aborted  the team to abort if the call cannot be interrupted; nullptr: the call goes on, and an equal call
  ///            continues it
  explicit BlockingCall(Team* aborted = nullptr);
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
  ~BlockingCall();

  /// From now on the call cannot be interrupted.
  void hold(Team& team) { aborted_ = &team; }
  [[nodiscard]] bool is_held() const { return aborted_ != nullptr; }

  /// Releases Python's lock for `run`.
  template <class Part>
  auto unlocked(const Part& part) {
    const nanobind::gil_scoped_release unlocked;
    return run(part);
  }

  /// Runs `part` without Python's lock. If a handler raised an exception meanwhile, throws it in place of the result or
  /// exception of `part`.
  template <class Part>
  auto run(const Part& part) {
    try {
      if constexpr (!std::is_void_v<decltype(part())>) {
        auto result = part();
        if (!raised_) return result;
      } else {
        part();
        if (!raised_) return;
      }
    } catch (...) {
      if (!raised_) throw;
    }
    throw nanobind::python_error(std::move(*raised_));
  }

 private:
  bool ends_wait(std::uint64_t now_ns) noexcept override;

  Team* aborted_;
  std::uint64_t next_ns_ = 0;  ///< next time to check for signals
  std::optional<nanobind::python_error> raised_;
};

/// Makes a blocking call of `part`, from begin to end.
template <class Part>
auto unlocked(const Part& part, Team* aborted = nullptr) {
  return BlockingCall(aborted).unlocked(part);
}

/// If an operation of the calling thread failed, throws the error that was recorded for it.
inline void require_ok(World& world, Status status) {
  if (status == Status::ok) return;
  const nanobind::gil_scoped_release unlocked;
  world.check();
  throw Error(status, "the operation was refused", world.rank());
}

}  // namespace beeline::python
