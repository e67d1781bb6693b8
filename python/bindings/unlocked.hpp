// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls that block without Python's lock, and the handlers of signals that come meanwhile.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "beeline/core/wait_policy.hpp"
#include "beeline/host/team.hpp"

namespace beeline::python {

/// A call of this thread that waits. If it is Python's main thread, handlers of signals run in its waits, at most some
/// 50 ms after the signal. What one raises ends the call: as a time-out does, or with an abort of its team.
class BlockingCall final : detail::WaitInterrupt {
 public:
  /// Throws invalid_argument in a handler that runs in another call's wait.
  ///   aborted  where the call cannot be left in the middle; nullptr: it goes on, and the same call continues it
  explicit BlockingCall(Team* aborted = nullptr);
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
  ~BlockingCall();

  /// From now on it cannot be left.
  void hold(Team& team) { aborted_ = &team; }
  [[nodiscard]] bool is_held() const { return aborted_ != nullptr; }

  /// Releases Python's lock for `run`.
  template <class Part>
  auto unlocked(const Part& part) {
    const nanobind::gil_scoped_release unlocked;
    return run(part);
  }

  /// Runs `part`, without Python's lock, and throws what a handler raised meanwhile in place of what it returns or
  /// throws.
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
  std::uint64_t next_ns_ = 0;  ///< when to look for signals again
  std::optional<nanobind::python_error> raised_;
};

/// The whole of such a call.
template <class Part>
auto unlocked(const Part& part, Team* aborted = nullptr) {
  return BlockingCall(aborted).unlocked(part);
}

}  // namespace beeline::python
