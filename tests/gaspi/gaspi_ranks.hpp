// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs test bodies as GASPI ranks, which are child processes, and checks the results of GASPI's functions.

#include <GASPI.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test {

/// Ranks of a test, all on CPUs.
struct GaspiRanks {
  int ranks = 2;
  int nodes = 1;                       ///< nodes that this machine acts as
  const char* transports = "sockets";  ///< between nodes
  int deadline_s = 20;                 ///< after which a GASPI_BLOCK wait logs what it waits for
};

/// Ends this process by SIGKILL, which the parent expects of `victim`.
[[noreturn]] void die();

/// Runs `body(rank)` in processes that have not called gaspi_proc_init.
[[nodiscard]] std::vector<RankOutcome> run_processes_for_gaspi(const GaspiRanks& how,
                                                               const std::function<void(int rank)>& body);

/// Runs `body(rank)` between gaspi_proc_init and gaspi_proc_term, and expects all ranks to pass.
void expect_gaspi(const GaspiRanks& how, const std::function<void(int rank)>& body);

/// As above, except that the rank `victim` dies in its body, and the others leave without gaspi_proc_term's success.
void expect_gaspi_without(int victim, const GaspiRanks& how, const std::function<void(int rank)>& body);

/// Calls `body`, and returns what this process meanwhile wrote to standard error.
[[nodiscard]] std::string logged_by(const std::function<void()>& body);

/// Repeats a call with a short time-out until it returns something else than GASPI_TIMEOUT, at most 20 s.
[[nodiscard]] gaspi_return_t repeat(const std::function<gaspi_return_t(gaspi_timeout_t)>& call,
                                    gaspi_timeout_t timeout_ms = 5);

/// For calls of several ranks of which one is late: it calls when the calls of all others have timed out. Made before
/// the ranks, which share the count of these time-outs.
class Latecomer {
 public:
  ///   others  number of ranks that wait for the late one in each call
  explicit Latecomer(int others);
  ~Latecomer();
  Latecomer(const Latecomer&) = delete;
  Latecomer& operator=(const Latecomer&) = delete;
  /// Makes this rank's part of the next call: repeats `call(timeout_ms)` until it succeeds.
  void make(bool is_late, const std::function<gaspi_return_t(gaspi_timeout_t)>& call, gaspi_timeout_t timeout_ms = 5);

 private:
  std::atomic<int>* const timeouts_;  ///< in memory of all ranks
  const int others_;
  int calls_ = 0;  ///< made by this rank
};

/// A segment of all ranks with zeros, and its memory in this process.
template <class T = std::uint64_t>
T* make_segment(gaspi_segment_id_t id, std::size_t count);

/// The memory of a segment.
template <class T = std::uint64_t>
T* segment_memory(gaspi_segment_id_t id);

/// Waits for one notification, resets it, and returns its value.
gaspi_notification_t take_notification(gaspi_segment_id_t segment, gaspi_notification_id_t id);

/// Expects `call` to return `expected` and to log one line that contains `reason`.
void expect_refused(gaspi_return_t expected, const std::string& reason, const char* text, const char* file, int line,
                    const std::function<gaspi_return_t()>& call);

}  // namespace beeline_test

/// The call must return this value.
#define GASPI_EXPECT(expected, ...) \
  beeline_test::check_equal(static_cast<int>(expected), static_cast<int>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define GASPI_OK(...) GASPI_EXPECT(GASPI_SUCCESS, __VA_ARGS__)
/// The call must return this value, and log one line with `reason`.
#define GASPI_REFUSED(expected, reason, ...) \
  beeline_test::expect_refused(expected, reason, #__VA_ARGS__, __FILE__, __LINE__, [&] { return __VA_ARGS__; })

namespace beeline_test {

template <class T>
T* segment_memory(gaspi_segment_id_t id) {
  gaspi_pointer_t memory = nullptr;
  GASPI_OK(gaspi_segment_ptr(id, &memory));
  return static_cast<T*>(memory);
}

template <class T>
T* make_segment(gaspi_segment_id_t id, std::size_t count) {
  GASPI_OK(gaspi_segment_create(id, count * sizeof(T), GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  return segment_memory<T>(id);
}

}  // namespace beeline_test
