// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Heaps and host areas of some ranks without a world.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "host/world/areas.hpp"
#include "host/world/membership.hpp"

namespace beeline {

/// Host ranks on the given nodes, as rank 0 sees them, with zeroed heaps and host areas.
class RankAreas {
 public:
  static constexpr std::size_t heap_bytes = std::size_t{1} << 16, pinned_bytes = std::size_t{1} << 12;
  static constexpr SlotLayout slot{min_slot_shift};

  ///   nodes  [ranks]
  explicit RankAreas(const std::vector<int>& nodes)
      : membership(0, members_on(nodes)), areas(make_areas(nodes.size())) {}

  const Membership membership;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static std::vector<Member> members_on(const std::vector<int>& nodes) {
    std::vector<Member> members;
    for (const int node : nodes) {
      members.emplace_back();
      members.back().process = members.size();
      members.back().node = members.back().host = node;
    }
    return members;
  }
  Areas make_areas(std::size_t ranks) {
    const std::size_t heap = aligned(sizeof(HeapHeader)) + heap_bytes;
    const std::size_t bytes = heap + aligned(sizeof(HostAreaHeader)) + pinned_bytes;
    std::vector<std::byte*> heaps, host_areas;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      memory_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(allocation_alignment, aligned(bytes))));
      std::memset(memory_.back().get(), 0, bytes);
      heaps.push_back(memory_.back().get());
      host_areas.push_back(heaps.back() + heap);
    }
    return {0, slot, heaps, host_areas};
  }
  std::vector<std::unique_ptr<std::byte, Free>> memory_;

 public:
  const Areas areas;
};

}  // namespace beeline
