// SPDX-License-Identifier: Apache-2.0
#include "runtime/residency.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "beeline/core/error.hpp"

namespace beeline {

ResidencyLedger& ResidencyLedger::of_gpu(int index) {
  static std::mutex mutex;
  static std::map<int, ResidencyLedger> ledgers;
  const std::lock_guard lock(mutex);
  return ledgers[index];
}

/// The sum over all groups of the largest share in the group. Launches of one group run one after the other.
template <class Group>
double ResidencyLedger::sum_of_largest(Group group) const {
  std::map<const void*, double> largest;
  for (const auto& [key, entry] : entries_) {
    double& share = largest[group(key)];
    share = std::max(share, entry.share);
  }
  double sum = 0;
  for (const auto& [each, share] : largest) sum += share;
  return sum;
}

/// At any time at most one launch of each stream is resident, and at most one of each turn: either sum is a bound.
bool ResidencyLedger::all_fit() const {
  constexpr double most = 1 + 1e-9;  // leaves room for rounding errors
  return sum_of_largest([](const Key& key) { return key.stream; }) <= most ||
         sum_of_largest([](const Key& key) { return key.turn(); }) <= most;
}

std::string ResidencyLedger::others(const Key& key) const {
  std::string waiting;
  for (const auto& [other, entry] : entries_)
    if (other.stream != key.stream && other.turn() != key.turn())
      waiting += fmt::format("; {} holds {:.0f} %", entry.what(), 100 * entry.share);
  return waiting;
}

void ResidencyLedger::claim(const void* stream, const void* serialization_key, double share,
                            std::function<std::string()> what, std::function<bool()> is_idle) {
  const Key key{stream, serialization_key};
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  const double before = entry.share;
  if (share > before) {
    entry.share = share;
    if (!all_fit())
      std::erase_if(entries_, [&](const auto& other) { return other.first != key && other.second.is_idle(); });
    if (!all_fit()) {
      const std::string waiting = others(key);
      entry.share = before;
      if (before == 0) entries_.erase(key);
      throw Error(Status::no_resource,
                  fmt::format("{} waits inside the kernel and needs {:.0f} % of the device's resident blocks at "
                              "once{}: launch fewer blocks (resident_blocks), or wait for the others first",
                              what(), 100 * share, waiting));
    }
  }
  if (share >= before) entry = {share, std::move(what), std::move(is_idle)};
}

void ResidencyLedger::keep(const void* owner, double share, std::function<std::string()> what) {
  claim(owner, nullptr, share, std::move(what), [] { return false; });
  const std::lock_guard lock(mutex_);
  entries_[{owner, nullptr}].is_kept = true;
}

double ResidencyLedger::kept() {
  const std::lock_guard lock(mutex_);
  double sum = 0;
  for (const auto& [key, entry] : entries_) sum += entry.is_kept ? entry.share : 0;
  return sum;
}

void ResidencyLedger::forget(const void* stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [stream](const auto& entry) { return entry.first.stream == stream; });
}

}  // namespace beeline
