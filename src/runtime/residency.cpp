// SPDX-License-Identifier: Apache-2.0
#include "runtime/residency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "beeline/core/error.hpp"

namespace beeline {

ReservedRoom room_for(unsigned blocks, unsigned per_multiprocessor, int multiprocessors) {
  return {static_cast<double>(blocks) / multiprocessors, 1.0 / per_multiprocessor};
}

unsigned share_of_rank(unsigned resident, double kept, const DeviceSharers& sharers) {
  const auto reserved = static_cast<unsigned>(std::ceil(kept * resident));
  const auto all = static_cast<unsigned>(sharers.all), of_process = static_cast<unsigned>(sharers.of_process);
  const unsigned share = resident * of_process / all;
  return share > reserved ? (share - reserved) / of_process : 0;
}

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
    share = std::max(share, entry.room.share);
  }
  double sum = 0;
  for (const auto& [each, share] : largest) sum += share;
  return sum;
}

double ResidencyLedger::largest_gap() const {
  double largest = 0;
  for (const auto& [key, entry] : entries_) largest = std::max(largest, entry.room.gap);
  return largest;
}

/// At any time at most one launch of each stream is resident, and at most one of each turn: either sum is a bound.
bool ResidencyLedger::all_fit() const {
  const double most = 1 - largest_gap() + 1e-9;  // the last term is for rounding errors
  return sum_of_largest([](const Key& key) { return key.stream; }) <= most ||
         sum_of_largest([](const Key& key) { return key.turn(); }) <= most;
}

std::string ResidencyLedger::others(const Key& key) const {
  std::string waiting;
  for (const auto& [other, entry] : entries_)
    if (other.stream != key.stream && other.turn() != key.turn())
      waiting += fmt::format("; {} holds {:.0f} %", entry.what(), 100 * entry.room.share);
  if (const double gap = largest_gap(); gap > 0)
    waiting +=
        fmt::format("; {:.0f} % are left free, so that blocks with reserved room find a multiprocessor", 100 * gap);
  return waiting;
}

std::string ResidencyLedger::Entry::refusal(const std::string& others) const {
  if (is_kept)
    return fmt::format(
        "{} needs {:.0f} % of the device's resident blocks beside grids that wait{}: wait for these "
        "first, or launch fewer of their blocks (resident_blocks)",
        what(), 100 * room.share, others);
  return fmt::format(
      "{} waits inside the kernel and needs {:.0f} % of the device's resident blocks at once{}: launch "
      "fewer blocks (resident_blocks), or wait for the others first",
      what(), 100 * room.share, others);
}

void ResidencyLedger::book(const Key& key, Entry booked) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  const ReservedRoom before = entry.room;
  if (booked.room.share > before.share) {
    entry.room = booked.room;
    if (!all_fit())
      std::erase_if(entries_, [&](const auto& other) { return other.first != key && other.second.is_idle(); });
    if (!all_fit()) {
      const std::string waiting = others(key);
      entry.room = before;
      if (before.share == 0) entries_.erase(key);
      throw Error(Status::no_resource, booked.refusal(waiting));
    }
  }
  if (booked.room.share >= before.share) entry = std::move(booked);
}

void ResidencyLedger::claim(const void* stream, const void* serialization_key, double share,
                            std::function<std::string()> what, std::function<bool()> is_idle) {
  book({stream, serialization_key}, {{share}, std::move(what), std::move(is_idle)});
}

void ResidencyLedger::keep(const void* owner, const ReservedRoom& room, std::function<std::string()> what) {
  book({owner, nullptr}, {room, std::move(what), [] { return false; }, true});
}

double ResidencyLedger::kept() {
  const std::lock_guard lock(mutex_);
  double sum = largest_gap();
  for (const auto& [key, entry] : entries_) sum += entry.is_kept ? entry.room.share : 0;
  return sum;
}

void ResidencyLedger::forget(const void* stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [stream](const auto& entry) { return entry.first.stream == stream; });
}

}  // namespace beeline
