// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/residency.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline {

ResidencyLedger& ResidencyLedger::of_gpu(int index) {
  static std::mutex mutex;
  static std::map<int, ResidencyLedger> ledgers;
  const std::lock_guard lock(mutex);
  return ledgers[index];
}

double ResidencyLedger::others(const void* stream) const {
  double sum = 0;
  for (const auto& [other, entry] : entries_)
    if (other != stream) sum += entry.share;
  return sum;
}

void ResidencyLedger::claim(const void* stream, double share, std::function<std::string()> what,
                            std::function<bool()> is_idle) {
  constexpr double rounding = 1e-9;
  const std::lock_guard lock(mutex_);
  if (others(stream) + share > 1 + rounding)
    std::erase_if(entries_, [&](const auto& entry) { return entry.first != stream && entry.second.is_idle(); });
  if (others(stream) + share > 1 + rounding) {
    std::string waiting;
    for (const auto& [other, entry] : entries_)
      if (other != stream) waiting += fmt::format("; {} holds {:.0f} %", entry.what(), 100 * entry.share);
    throw Error(
        Status::no_resource,
        fmt::format("{} waits inside the kernel and needs {:.0f} % of the device's resident blocks at once{}: launch "
                    "fewer blocks (resident_blocks), or wait for the others first",
                    what(), 100 * share, waiting));
  }
  Entry& entry = entries_[stream];
  if (share >= entry.share) entry = {share, std::move(what), std::move(is_idle)};
}

void ResidencyLedger::forget(const void* stream) {
  const std::lock_guard lock(mutex_);
  entries_.erase(stream);
}

}  // namespace beeline
