// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator_union.hpp"

#include <cstddef>
#include <cstring>
#include <map>
#include <span>

namespace beeline {

namespace {

struct Piece {
  std::uint64_t allocator, offset, bytes;
};

}  // namespace

void unite_allocators(Bootstrap& bootstrap, const std::vector<OffsetAllocator*>& allocators, std::int64_t deadline_ns) {
  std::vector<Piece> mine;
  for (std::size_t index = 0; index < allocators.size(); ++index)
    for (const auto& [offset, bytes] : allocators[index]->used()) mine.push_back({index, offset, bytes});
  std::vector<std::map<std::size_t, std::size_t>> used(allocators.size());
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(mine)), deadline_ns)) {
    std::vector<Piece> theirs(bytes.size() / sizeof(Piece));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(Piece));
    for (const Piece& piece : theirs) used.at(piece.allocator)[piece.offset] = piece.bytes;
  }
  for (std::size_t index = 0; index < allocators.size(); ++index) allocators[index]->assign(std::move(used[index]));
}

}  // namespace beeline
