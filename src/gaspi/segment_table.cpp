// SPDX-License-Identifier: Apache-2.0
#include "gaspi/segment_table.hpp"

#include <bit>

namespace beeline::gaspi {

void SegmentTable::set(std::uint32_t id, int rank, const Part& part) {
  Entry* row = rows_[id].load(std::memory_order_relaxed);
  if (row == nullptr) {
    if (part.kind == Memory::none) return;
    row = owned_.emplace_back(std::make_unique<Entry[]>(ranks_)).get();
    rows_[id].store(row, std::memory_order_seq_cst);
  }
  const auto values = std::bit_cast<Words>(part);
  Entry& entry = row[rank];
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store(sequence + 1, std::memory_order_relaxed);
  // A reader that sees a new word also sees the odd sequence number.
  for (std::size_t word = 0; word < words; ++word) entry.values[word].store(values[word], std::memory_order_release);
  entry.sequence.store(sequence + 2, std::memory_order_seq_cst);
  changes_.fetch_add(1, std::memory_order_release);
}

bool SegmentTable::is_in_use(std::uint32_t id) const {
  return shared_uses_[id].load(std::memory_order_seq_cst) != 0 || SegmentReaders::any(id);
}

}  // namespace beeline::gaspi
