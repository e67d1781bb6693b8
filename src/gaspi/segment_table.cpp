// SPDX-License-Identifier: Apache-2.0
#include "gaspi/segment_table.hpp"

#include <cstring>

namespace beeline::gaspi {

Part SegmentTable::part(std::uint32_t id, int rank) const {
  Part found;
  if (id >= segment_ids || rank < 0 || static_cast<std::size_t>(rank) >= ranks_) return found;
  const Entry* const row = rows_[id].load(std::memory_order_seq_cst);
  if (row == nullptr) return found;
  const Entry& entry = row[rank];
  std::uint64_t values[words];
  for (;;) {
    const std::uint64_t before = entry.sequence.load(std::memory_order_seq_cst);
    for (std::size_t word = 0; word < words; ++word) values[word] = entry.values[word].load(std::memory_order_acquire);
    if (before % 2 == 0 && entry.sequence.load(std::memory_order_relaxed) == before) break;
  }
  std::memcpy(static_cast<void*>(&found), values, sizeof found);
  return found;
}

void SegmentTable::set(std::uint32_t id, int rank, const Part& part) {
  Entry* row = rows_[id].load(std::memory_order_relaxed);
  if (row == nullptr) {
    if (part.kind == Memory::none) return;
    row = owned_.emplace_back(std::make_unique<Entry[]>(ranks_)).get();
    rows_[id].store(row, std::memory_order_seq_cst);
  }
  std::uint64_t values[words];
  std::memcpy(values, &part, sizeof part);
  Entry& entry = row[rank];
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store(sequence + 1, std::memory_order_relaxed);
  // A reader that sees a new word also sees the odd sequence number.
  for (std::size_t word = 0; word < words; ++word) entry.values[word].store(values[word], std::memory_order_release);
  entry.sequence.store(sequence + 2, std::memory_order_seq_cst);
  changes_.fetch_add(1, std::memory_order_release);
}

bool SegmentTable::is_in_use(std::uint32_t id) const {
  for (const Lane& lane : users_)
    if (lane.of[id].load(std::memory_order_seq_cst) != 0) return true;
  return false;
}

}  // namespace beeline::gaspi
