// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ordinary memory of the ranks, which they map for each other segment by segment, as collectives come to use it.
///
/// A segment is an allocation of the CUDA runtime (cudaMalloc); frameworks cut tensors out of it. It is found by a
/// vector's address, shown to the peers on a board in shared memory, and mapped by them in their next call. Nobody
/// waits for that: until all have mapped a segment, calls with it go through the channel's memory. Whether a call uses
/// its vectors where they lie, its members agree upon in its first round (impl/schedule/mapped.hpp).
///
///     owner: a call with a new segment          peer: its next call
///     fills a free place of its board
///     generation = g                       -->  maps it; seen: address, then generation g
///     a later call finds that all have seen g: direct
///     the segment is gone (another id):
///     generation = 0                       -->  closes the mapping; seen: generation 0
///     the place is free when no member's `seen` is g
///
/// An allocation's id, which CUDA never gives again, tells a new segment at the address of an old one. Each call looks
/// at one of this rank's segments, whose memory may have been freed; until then, and until their own next call, peers
/// keep the memory of what was freed: at most `most_segments` of a rank's, for as many of its calls as it has segments
/// mapped, and one of the peer's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "beeline/collectives/impl/vector_mappings.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Memory of which segments are cut, as a rank and its peers see it. Any number of calls, from one thread at a time.
class SegmentMemory {
 public:
  struct Segment {
    std::uintptr_t start = 0;
    std::size_t bytes = 0;  ///< 0: there is none
    std::uint64_t id = 0;   ///< no other segment has it, before or after
  };
  using Handle = std::array<unsigned char, 64>;

  virtual ~SegmentMemory() = default;
  /// Of the segment that holds an address; 0: none does. Quick: every call asks.
  [[nodiscard]] virtual std::uint64_t id_at(std::uintptr_t address) const = 0;
  [[nodiscard]] virtual Segment segment_at(std::uintptr_t address) const = 0;
  /// Names a segment of this rank for the other members; throws where it cannot be shared.
  [[nodiscard]] virtual Handle share(std::uintptr_t start) const = 0;
  /// The address at which this rank reaches a segment that `owner` has shared; throws where it cannot.
  [[nodiscard]] virtual std::uintptr_t open(int owner, std::uintptr_t start, const Handle& handle) = 0;
  virtual void close(int owner, std::uintptr_t address) = 0;
};

/// What the ranks of a world map of each other's memory, for `CollectiveCall::mappings`; see the file.
class SegmentMappings {
 public:
  static constexpr std::size_t most_segments = 256;  ///< of a rank

  /// Collective over the world, of at most detail::most_mapping_members ranks.
  ///   memory  nullptr: CUDA's on a GPU rank; on host ranks nothing is mapped, and those of one process reach all of it
  explicit SegmentMappings(World& world, std::unique_ptr<SegmentMemory> memory = nullptr);
  /// Collective. The calls must be over.
  ~SegmentMappings();
  SegmentMappings(const SegmentMappings&) = delete;
  SegmentMappings& operator=(const SegmentMappings&) = delete;

  struct Vector {
    const void* at;
    std::size_t bytes;
  };
  /// Where the members of `team` reach two vectors of this rank's. Shows theirs to peers that do not know them, maps
  /// what these have shown, without waiting. Any thread, one at a time for each rank.
  ///   is_captured  the call is captured by a graph: it reaches what all had mapped before, for as long as the segments
  ///                are there; the caller keeps the memory as long as the graph, as for every kernel of a graph
  [[nodiscard]] detail::VectorMappings find(Team& team, Vector destination, Vector source, bool is_captured = false);
  /// Why the vectors of the latest `find` cannot be mapped; empty if they are, or as soon as all peers have been here.
  [[nodiscard]] std::string reason() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
