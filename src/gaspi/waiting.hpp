// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a call waits: in slices that are shorter than the world's deadline, so that its own time-out never aborts the
/// world, and that end when a rank which the call needs has failed.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gaspi/process.hpp"

namespace beeline::gaspi {

/// GASPI_BLOCK and GASPI_TEST, in milliseconds.
inline constexpr std::uint64_t block_ms = ~std::uint64_t{0}, test_ms = 0;

/// Refers to a function object that lists world ranks, and that outlives this. Making one costs nothing.
class RankList {
 public:
  RankList() = default;
  template <class List>
  RankList(const List* list)
      : list_(list), call_([](const void* called) { return (*static_cast<const List*>(called))(); }) {}
  /// The ranks; none without a function object.
  [[nodiscard]] std::vector<int> operator()() const { return list_ == nullptr ? std::vector<int>() : call_(list_); }

 private:
  const void* list_ = nullptr;
  std::vector<int> (*call_)(const void* list) = nullptr;
};

/// What a call waits for.
struct Awaited {
  const char* what;                  ///< for texts, such as "the barrier of group"
  std::uint64_t number = no_number;  ///< appended to `what`
  std::span<const int> needed = {};  ///< world ranks: the call fails if one of them has failed
  bool needs_a_peer = false;         ///< the call fails if no other rank is healthy, but one has failed
  RankList missing = {};  ///< for the log: the ranks that the call still waits for, as far as this rank knows

  static constexpr std::uint64_t no_number = ~std::uint64_t{0};
};

/// Limit of the first attempt of a call, for `timeout_ns` of a function of Beeline. 0: test once.
[[nodiscard]] inline std::uint64_t first_slice_ns(std::uint64_t deadline_ns, std::uint64_t timeout_ms) {
  constexpr std::uint64_t longest_ms = 100;  // so late is the failure of a needed rank noticed
  return std::min(std::min(longest_ms, timeout_ms) * 1'000'000, deadline_ns / 4);
}

/// One wait of a call, after its first attempt, for something that outlives this object.
class Waiting {
 public:
  Waiting(const Process& process, const Awaited& awaited, std::uint64_t timeout_ms)
      : process_(process), awaited_(awaited), timeout_ms_(timeout_ms) {}
  /// Limit of the next attempt, as `first_slice_ns`.
  [[nodiscard]] std::uint64_t slice_ns() const;
  /// After an attempt that returned `status`, which is not BEELINE_OK: whether to try again. False: the time-out of the
  /// call has passed. After an abort of the world it waits, within the time-out, until the service thread has gone on
  /// without the lost ranks. Throws Failure, with the culprit's name, if a needed rank has failed, and for all other
  /// failures.
  [[nodiscard]] bool go_on(beeline_status status);

 private:
  void require_needed() const;
  void log_if_late();
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] std::uint64_t limit_ns() const;
  [[nodiscard]] std::string text() const;
  const Process& process_;
  const Awaited& awaited_;
  const std::uint64_t timeout_ms_;
  std::uint64_t start_ns_ = 0, logged_ns_ = 0, now_ns_ = 0;  ///< 0: before the first `go_on`
  std::uint64_t recovery_ = ~std::uint64_t{0};               ///< number of recoveries at the last abort
};

/// `wait_for` after its first attempt, which returned `status`. Out of line, since most calls succeed at once.
template <class Attempt>
[[nodiscard, gnu::noinline]] Result wait_on(const Process& process, const Awaited& awaited, std::uint64_t timeout_ms,
                                            const Attempt& attempt, beeline_status status) {
  Waiting waiting(process, awaited, timeout_ms);
  while (waiting.go_on(status)) {
    status = attempt(waiting.slice_ns());
    if (status == BEELINE_OK) return Result::success;
  }
  return Result::timeout;
}

/// Calls `attempt(slice_ns)`, which returns a beeline_status, until it returns BEELINE_OK or the time-out has passed.
/// Throws the failures of `Waiting::go_on`.
template <class Attempt>
[[nodiscard]] Result wait_for(const Process& process, const Awaited& awaited, std::uint64_t timeout_ms,
                              const Attempt& attempt) {
  const beeline_status first = attempt(first_slice_ns(process.deadline_ns(), timeout_ms));
  if (first == BEELINE_OK) [[likely]]
    return Result::success;
  return wait_on(process, awaited, timeout_ms, attempt, first);
}

}  // namespace beeline::gaspi
