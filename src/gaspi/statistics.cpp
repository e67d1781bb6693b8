// SPDX-License-Identifier: Apache-2.0
#include "gaspi/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "gaspi/call.hpp"

namespace beeline::gaspi {

std::atomic<std::uint32_t> statistics_level{0};

namespace {

constexpr std::size_t most_ranks = 1024;

struct Text {
  const char *name, *description;
  bool is_for_each_rank = false;
};
constexpr std::array<Text, counters> texts{{
    {"writes", "Writes that were posted; each element of a list counts."},
    {"reads", "Reads that were posted; each element of a list counts."},
    {"notifications", "Notifications that were posted."},
    {"bytes_written", "Bytes of the writes."},
    {"bytes_read", "Bytes of the reads."},
    {"queue_waits", "Calls of gaspi_wait."},
    {"queue_wait_us", "Microseconds in gaspi_wait."},
    {"notification_waits", "Calls of gaspi_notify_waitsome."},
    {"notification_wait_us", "Microseconds in gaspi_notify_waitsome."},
    {"passive_sends", "Passive messages that were sent."},
    {"passive_receives", "Passive messages that were received."},
    {"atomics", "Atomic operations."},
    {"barriers", "Barriers that were completed."},
    {"reductions", "All-reduces that were completed."},
    {"bytes_written_to", "Bytes of the writes to a rank.", true},
    {"bytes_read_from", "Bytes of the reads from a rank.", true},
}};

using Value = std::atomic<std::uint64_t>;
std::array<Value, counters> sums{};
/// Of the counters for each rank.
std::array<Value, most_ranks> written_to{}, read_from{};

std::array<Value, most_ranks>& ranks_of(Counter counter) {
  return counter == Counter::bytes_written_to ? written_to : read_from;
}

const Text& text_of(gaspi_statistic_counter_t counter) {
  if (counter >= counters) refuse(GASPI_ERROR, fmt::format("counter {} of {}", counter, counters));
  return texts[counter];
}

unsigned long value_of(gaspi_statistic_counter_t counter, gaspi_number_t argument) {
  if (!text_of(counter).is_for_each_rank) return sums[counter].load(std::memory_order_relaxed);
  if (argument >= most_ranks) refuse(GASPI_ERR_INV_RANK, fmt::format("rank {}", argument));
  return ranks_of(static_cast<Counter>(counter))[argument].load(std::memory_order_relaxed);
}

}  // namespace

void add_to_counter(Counter counter, std::uint64_t value) {
  sums[static_cast<std::uint32_t>(counter)].fetch_add(value, std::memory_order_relaxed);
}

void add_to_transfers(Counter calls, Counter bytes, Counter bytes_of_rank, int rank, std::uint64_t size) {
  add_to_counter(calls, 1);
  add_to_counter(bytes, size);
  if (statistics_level.load(std::memory_order_relaxed) > 1)
    ranks_of(bytes_of_rank)[static_cast<std::size_t>(rank)].fetch_add(size, std::memory_order_relaxed);
}

void CountedWait::end() const {
  add_to_counter(waits_, 1);
  add_to_counter(us_, (now_ns() - start_ns_) / 1000);
}

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_statistic_counter_max(gaspi_number_t* counter_max) {
  return call_any_time("gaspi_statistic_counter_max", [&] {
    require_pointer(counter_max, "counter_max");
    *counter_max = counters;
  });
}
GASPI_EXPORT(statistic_counter_max);

gaspi_return_t pgaspi_statistic_counter_info(gaspi_statistic_counter_t counter,
                                             gaspi_statistic_argument_t* counter_argument, gaspi_string_t* counter_name,
                                             gaspi_string_t* counter_description, gaspi_number_t* verbosity_level) {
  return call_any_time("gaspi_statistic_counter_info", [&] {
    const Text& text = text_of(counter);
    require_pointer(counter_argument, "counter_argument");
    require_pointer(counter_name, "counter_name");
    require_pointer(counter_description, "counter_description");
    require_pointer(verbosity_level, "verbosity_level");
    *counter_argument = text.is_for_each_rank ? GASPI_STATISTIC_ARGUMENT_RANK : GASPI_STATISTIC_ARGUMENT_NONE;
    *counter_name = const_cast<gaspi_string_t>(text.name);
    *counter_description = const_cast<gaspi_string_t>(text.description);
    *verbosity_level = text.is_for_each_rank ? 2 : 1;
  });
}
GASPI_EXPORT(statistic_counter_info);

gaspi_return_t pgaspi_statistic_verbosity_level(gaspi_number_t verbosity_level) {
  statistics_level.store(verbosity_level, std::memory_order_relaxed);
  return GASPI_SUCCESS;
}
GASPI_EXPORT(statistic_verbosity_level);

gaspi_return_t pgaspi_statistic_counter_get(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                            unsigned long* value) {
  return call_any_time("gaspi_statistic_counter_get", [&] {
    require_pointer(value, "value");
    *value = value_of(counter, argument);
  });
}

gaspi_return_t pgaspi_statistic_counter_get_number(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                                   gaspi_number_t* value) {
  return call_any_time("gaspi_statistic_counter_get", [&] {
    require_pointer(value, "value");
    constexpr unsigned long most = std::numeric_limits<gaspi_number_t>::max();
    *value = static_cast<gaspi_number_t>(std::min(value_of(counter, argument), most));
  });
}
GASPI_EXPORT(statistic_counter_get_number);

gaspi_return_t pgaspi_statistic_counter_reset(gaspi_statistic_counter_t counter) {
  return call_any_time("gaspi_statistic_counter_reset", [&] {
    if (!text_of(counter).is_for_each_rank) return sums[counter].store(0, std::memory_order_relaxed);
    for (Value& value : ranks_of(static_cast<Counter>(counter))) value.store(0, std::memory_order_relaxed);
  });
}
GASPI_EXPORT(statistic_counter_reset);

gaspi_return_t pgaspi_pcontrol(gaspi_pointer_t) { return GASPI_SUCCESS; }
GASPI_EXPORT(pcontrol);

extern "C" __attribute__((weak, alias("pgaspi_statistic_counter_get"))) gaspi_return_t gaspi_statistic_counter_get(
    gaspi_statistic_counter_t, gaspi_number_t, unsigned long*);
