// SPDX-License-Identifier: Apache-2.0
#include "memory/offset_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "beeline/core/error.hpp"

namespace beeline {

OffsetAllocator::OffsetAllocator(std::size_t bytes, std::size_t alignment) : bytes_(bytes), alignment_(alignment) {
  if (bytes > 0) free_[0] = bytes;
}

std::size_t OffsetAllocator::free_bytes() const {
  std::size_t sum = 0;
  for (const auto& [offset, bytes] : free_) sum += bytes;
  return sum;
}

void OffsetAllocator::assign(std::map<std::size_t, std::size_t> used) {
  std::map<std::size_t, std::size_t> holes;
  std::size_t end = 0;  // end of the allocations visited so far
  for (const auto& [offset, bytes] : used) {
    require(offset >= end && bytes <= bytes_ && offset <= bytes_ - bytes, Status::internal,
            fmt::format("allocation of {} bytes at offset {} overlaps another, or the heap's end", bytes, offset));
    if (offset > end) holes[end] = offset - end;
    end = offset + bytes;
  }
  if (end < bytes_) holes[end] = bytes_ - end;
  free_ = std::move(holes);
  used_ = std::move(used);
}

std::size_t OffsetAllocator::rounded(std::size_t bytes) const {
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  const std::size_t units = (wanted + alignment_ - 1) / alignment_ * alignment_;
  if (units < wanted) refuse(bytes);
  return units;
}

void OffsetAllocator::refuse(std::size_t bytes) const {
  throw Error(Status::no_resource,
              fmt::format("no room for {} bytes (in units of {}): {} bytes are free{}; set BEELINE_HEAP_BYTES or "
                          "BEELINE_PINNED_HEAP_BYTES higher",
                          bytes, alignment_, free_bytes(), free_.size() > 1 ? ", in several pieces" : ""));
}

std::size_t OffsetAllocator::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  const auto hole = std::find_if(free_.begin(), free_.end(), [&](const auto& entry) { return entry.second >= wanted; });
  if (hole == free_.end()) refuse(bytes);
  const auto [offset, size] = *hole;
  free_.erase(hole);
  if (size > wanted) free_[offset + wanted] = size - wanted;
  used_[offset] = wanted;
  return offset;
}

std::size_t OffsetAllocator::allocate_high(std::size_t bytes, std::size_t most) {
  const std::size_t wanted = rounded(bytes);
  for (auto hole = free_.rbegin(); hole != free_.rend(); ++hole) {
    const auto [start, size] = *hole;
    if (size < wanted || start > most) continue;
    const std::size_t offset = std::min(start + size - wanted, most) / alignment_ * alignment_;
    free_.erase(start);
    if (offset > start) free_[start] = offset - start;
    if (start + size > offset + wanted) free_[offset + wanted] = start + size - offset - wanted;
    used_[offset] = wanted;
    return offset;
  }
  refuse(bytes);
}

void OffsetAllocator::free(std::size_t offset) {
  const auto entry = used_.find(offset);
  if (entry == used_.end())
    throw Error(Status::invalid_argument, fmt::format("offset {} is not allocated: freed before, or never", offset));
  auto [hole, added] = free_.emplace(*entry);
  used_.erase(entry);
  if (const auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole == free_.begin()) return;
  if (const auto previous = std::prev(hole); previous->first + previous->second == hole->first) {
    previous->second += hole->second;
    free_.erase(hole);
  }
}

}  // namespace beeline
