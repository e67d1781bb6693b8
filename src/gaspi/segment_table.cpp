// SPDX-License-Identifier: Apache-2.0
#include "gaspi/segment_table.hpp"

#include <bit>
#include <chrono>
#include <thread>

#include "gaspi/clock.hpp"

namespace beeline::gaspi {

PartWords words_of(const Part& part) {
  return {std::bit_cast<std::uint64_t>(part.data),
          std::bit_cast<std::uint64_t>(part.address),
          std::bit_cast<std::uint64_t>(part.flags),
          std::bit_cast<std::uint64_t>(part.registered),
          part.registered_offset,
          part.bytes,
          static_cast<std::uint64_t>(part.kind) | (part.is_for_me ? 0x100u : 0u) |
              (part.has_flags_on_device ? 0x200u : 0u) | (part.is_direct ? 0x400u : 0u)};
}

void SegmentTable::set(std::uint32_t id, int rank, const Part& part) {
  Entry* row = rows_[id].load(std::memory_order_relaxed);
  if (row == nullptr) {
    if (part.kind == Memory::none) return;
    row = owned_.emplace_back(std::make_unique<Entry[]>(ranks_)).get();
    rows_[id].store(row, std::memory_order_seq_cst);
  }
  const PartWords values = words_of(part);
  Entry& entry = row[rank];
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store(sequence + 1, std::memory_order_relaxed);
  // A reader that sees a new word also sees the odd sequence number.
  for (std::size_t word = 0; word < values.size(); ++word)
    entry.values[word].store(values[word], std::memory_order_release);
  entry.sequence.store(sequence + 2, std::memory_order_seq_cst);
  changes_.fetch_add(1, std::memory_order_release);
}

bool SegmentTable::EarlierReaders::have_ended() {
  // The two are independent: no later reader finds the part.
  have_shared_ended_ = have_shared_ended_ || table_.shared_uses_[id_].load(std::memory_order_seq_cst) == 0;
  return uses_.have_ended() && have_shared_ended_;
}

bool SegmentTable::await_end(std::uint32_t id, std::uint64_t limit_ns) const {
  const std::uint64_t start_ns = now_ns();
  while (is_removed_from_[id].load(std::memory_order_relaxed)) {
    if (now_ns() - start_ns >= limit_ns) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace beeline::gaspi
