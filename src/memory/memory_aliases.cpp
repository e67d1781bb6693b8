// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_aliases.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace beeline {

namespace {

/// The position of a rank among an array's owners; `owner_count` if it has no chunk.
std::size_t position_of(const ChunkTable& array, std::uint32_t rank) {
  const std::uint16_t* const end = array.owners + array.owner_count;
  return static_cast<std::size_t>(std::find(array.owners, end, rank) - array.owners);
}

std::byte* chunk_byte(const ChunkTable& array, std::uint32_t rank, std::size_t offset) {
  const std::size_t chunk = offset / array.chunk_bytes() * array.owner_count + position_of(array, rank);
  if (chunk >= array.chunk_count() || array.owners[chunk % array.owner_count] != rank) return nullptr;
  return reinterpret_cast<std::byte*>(array.base) + chunk * array.chunk_bytes() + offset % array.chunk_bytes();
}

}  // namespace

std::uint64_t MemoryAliases::open(std::size_t bytes, const AliasedPart& part) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t offset = slot_.half() + offsets_.allocate(bytes);
  aliases_[offset] = {part, {}};
  return offset;
}

void MemoryAliases::open(const ChunkTable& array) {
  const std::size_t chunks = (array.chunk_count() + array.owner_count - 1) / array.owner_count;
  const std::lock_guard lock(mutex_);
  aliases_[slot_.half() + offsets_.allocate(chunks * array.chunk_bytes())] = {{}, array};
}

void MemoryAliases::close(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  aliases_.erase(offset);
  offsets_.free(offset - slot_.half());
}

void MemoryAliases::close_array(std::uintptr_t base) {
  std::uint64_t offset = 0;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [first, alias] : aliases_)
      if (alias.array.base == base) offset = first;
  }
  if (offset != 0) close(offset);
}

std::byte* MemoryAliases::find(std::uint32_t rank, std::uint64_t offset) const {
  const std::shared_lock lock(mutex_);
  const auto behind = aliases_.upper_bound(offset);
  if (behind == aliases_.begin()) return nullptr;
  const auto& [first, alias] = *std::prev(behind);
  if (alias.array.base != 0) return chunk_byte(alias.array, rank, offset - first);
  const bool is_here = alias.part.owner == rank && offset - first < alias.part.bytes;
  return is_here ? alias.part.start + (offset - first) : nullptr;
}

std::uint64_t MemoryAliases::offset_in_array(const void* address) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [first, alias] : aliases_) {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - alias.array.base;
    if (alias.array.base == 0 || offset >= alias.array.bytes) continue;
    const std::size_t size = alias.array.chunk_bytes();
    return first + offset / size / alias.array.owner_count * size + offset % size;
  }
  return 0;
}

}  // namespace beeline
