// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which ranks have failed: GASPI's state vector.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace beeline::gaspi {

/// Thread-safe. The service thread records failures; a rank that has failed never becomes healthy again.
class HealthTable {
 public:
  explicit HealthTable(int ranks)
      : ranks_(static_cast<std::size_t>(ranks)), failed_(std::make_unique<std::atomic<bool>[]>(ranks_)) {}

  /// False also for numbers outside the world. Does not block.
  [[nodiscard]] bool is_healthy(int rank) const {
    return rank >= 0 && static_cast<std::size_t>(rank) < ranks_ && !failed_[static_cast<std::size_t>(rank)].load();
  }
  /// The first of `ranks` that has failed; -1: none has.
  [[nodiscard]] int first_failed(std::span<const int> ranks) const {
    if (count_.load() == 0) return -1;
    for (const int rank : ranks)
      if (!is_healthy(rank)) return rank;
    return -1;
  }
  [[nodiscard]] int failures() const { return count_.load(); }
  /// Why a rank has failed, one line; empty if it has not.
  [[nodiscard]] std::string reason(int rank) const {
    const std::lock_guard lock(mutex_);
    const auto found = reasons_.find(rank);
    return found == reasons_.end() ? std::string() : found->second;
  }

  /// Records a failure; the first reason of a rank stays.
  void fail(int rank, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!reasons_.emplace(rank, reason).second) return;
    failed_[static_cast<std::size_t>(rank)].store(true);
    count_.fetch_add(1);
  }

 private:
  const std::size_t ranks_;
  std::unique_ptr<std::atomic<bool>[]> failed_;
  std::atomic<int> count_{0};
  mutable std::mutex mutex_;
  std::map<int, std::string> reasons_;
};

}  // namespace beeline::gaspi
