// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counters of what this process does, off by default (level 0).

#include <atomic>
#include <cstdint>

#include "gaspi/clock.hpp"

namespace beeline::gaspi {

/// The counters, in the order of their numbers. Their texts are in statistics.cpp.
enum class Counter : std::uint32_t {
  writes,
  reads,
  notifications,
  bytes_written,
  bytes_read,
  queue_waits,
  queue_wait_us,
  notification_waits,
  notification_wait_us,
  passive_sends,
  passive_receives,
  atomics,
  barriers,
  reductions,
  bytes_written_to,  ///< for each rank
  bytes_read_from    ///< for each rank
};
inline constexpr std::uint32_t counters = static_cast<std::uint32_t>(Counter::bytes_read_from) + 1;

/// What `gaspi_statistic_verbosity_level` has set: 1 counts all but the counters for each rank, 2 counts all.
extern std::atomic<std::uint32_t> statistics_level;

void add_to_counter(Counter counter, std::uint64_t value);
void add_to_transfers(Counter calls, Counter bytes, Counter bytes_of_rank, int rank, std::uint64_t size);

inline void count(Counter counter) {
  if (statistics_level.load(std::memory_order_relaxed) != 0) [[unlikely]]
    add_to_counter(counter, 1);
}
inline void count_write(int rank, std::uint64_t size) {
  if (statistics_level.load(std::memory_order_relaxed) != 0) [[unlikely]]
    add_to_transfers(Counter::writes, Counter::bytes_written, Counter::bytes_written_to, rank, size);
}
inline void count_read(int rank, std::uint64_t size) {
  if (statistics_level.load(std::memory_order_relaxed) != 0) [[unlikely]]
    add_to_transfers(Counter::reads, Counter::bytes_read, Counter::bytes_read_from, rank, size);
}

/// Counts a wait and its duration from here to the end of the scope.
class CountedWait {
 public:
  CountedWait(Counter waits, Counter us)
      : waits_(waits), us_(us), start_ns_(statistics_level.load(std::memory_order_relaxed) == 0 ? 0 : now_ns()) {}
  ~CountedWait() {
    if (start_ns_ != 0) [[unlikely]]
      end();
  }
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;

 private:
  void end() const;

  const Counter waits_, us_;
  const std::uint64_t start_ns_;  ///< 0: nothing is counted
};

}  // namespace beeline::gaspi
