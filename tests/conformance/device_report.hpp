// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks inside kernels: the first failure is kept for the host.

#include <cstdint>

#include "beeline/beeline.hpp"

namespace beeline_test {

/// The failures of a kernel, in memory local to its rank.
struct DeviceReport {
  std::uint32_t failures, line;
  std::uint64_t expected, observed;
};

BEELINE_HOST_DEVICE inline void report_failure(DeviceReport* report, std::uint32_t line, std::uint64_t expected,
                                               std::uint64_t observed) {
  beeline::detail::DeviceAtomic<std::uint32_t> failures(report->failures);
  if (failures.fetch_add(1, std::memory_order_relaxed) != 0) return;
  report->line = line;
  report->expected = expected;
  report->observed = observed;
}

}  // namespace beeline_test

/// Compares two integers or enumerators in a kernel; `report` is a DeviceReport*.
#define BEELINE_DEVICE_CHECK_EQ(report, expected_value, observed_value)                               \
  do {                                                                                                \
    const auto expected_ = static_cast<std::uint64_t>(expected_value);                                \
    const auto observed_ = static_cast<std::uint64_t>(observed_value);                                \
    if (expected_ != observed_) beeline_test::report_failure(report, __LINE__, expected_, observed_); \
  } while (false)
