// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The errors of commands that an engine has refused.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace beeline {

/// The first refusal of each queue; later commands are refused because of it, with no further text. Thread-safe. A
/// queue is identified by any address that belongs to it alone.
class Refusals {
 public:
  /// Keeps a refusal, unless one of the queue is kept that was not taken yet.
  ///   is_reported  whether another error reports its cause; `take` then leaves it out
  void add(const void* queue, std::string text, bool is_reported = false) {
    const std::lock_guard lock(mutex_);
    const auto [kept, is_first] = first_.try_emplace(queue);
    if (!is_first && !kept->second.is_taken) return;
    if (!is_reported) ++untaken_;
    kept->second = {std::move(text), is_reported};
  }
  /// The refusal of a queue; empty if none of its commands was refused.
  [[nodiscard]] std::string of(const void* queue) const {
    const std::lock_guard lock(mutex_);
    const auto found = first_.find(queue);
    return found == first_.end() ? std::string() : found->second.text;
  }
  /// Takes the refusals of all queues that were not taken before.
  [[nodiscard]] std::vector<std::string> take() {
    std::vector<std::string> all;
    if (untaken_ == 0) return all;  // the usual case
    const std::lock_guard lock(mutex_);
    for (auto& [queue, refusal] : first_)
      if (!std::exchange(refusal.is_taken, true)) all.push_back(refusal.text);
    untaken_ = 0;
    return all;
  }
  /// Forgets a queue that ends.
  void forget(const void* queue) {
    const std::lock_guard lock(mutex_);
    const auto found = first_.find(queue);
    if (found == first_.end()) return;
    untaken_ -= found->second.is_taken ? 0 : 1;
    first_.erase(found);
  }

 private:
  struct Refusal {
    std::string text;
    bool is_taken = false;
  };
  mutable std::mutex mutex_;
  std::map<const void*, Refusal> first_;
  std::atomic<std::size_t> untaken_{0};
};

}  // namespace beeline
