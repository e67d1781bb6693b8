// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Warnings of signals that repeat a value (BEELINE_CHECK).

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "beeline/device/impl/host_checks.hpp"
#include "host/world/areas.hpp"

namespace beeline {

/// Warns once for each signal, of a limited number of signals. Thread-safe.
class RepeatedSignalLog final : public detail::RepeatedSignals {
 public:
  ///   areas  outlive this object
  RepeatedSignalLog(const Areas& areas, int rank) : areas_(areas), rank_(rank) {}
  void report(std::uint32_t sender, std::uint32_t receiver, std::uint64_t offset, std::uint64_t value) override;

 private:
  const Areas& areas_;
  const int rank_;
  std::mutex mutex_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> reported_;  ///< receiver and offset
};

}  // namespace beeline
