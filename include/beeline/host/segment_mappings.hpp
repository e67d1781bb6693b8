// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Mappings of ordinary memory between ranks, made segment by segment when collectives first use the memory.
///
/// A segment is an allocation of the CUDA runtime (cudaMalloc), in which frameworks place several tensors. A rank finds
/// the segment by a vector's address and publishes it on a board in shared memory. The peers map it in their next call.
/// No rank waits for a mapping: until all peers have mapped a segment, calls with its vectors go through the channel's
/// memory. In the first round of a call the members agree whether they access its vectors directly
/// (impl/schedule/mapped.hpp).
///
///     owner: a call with a new segment          peer: its next call
///     fills a free entry of its board
///     generation = g                       -->  maps it; seen: address, then generation g
///     a later call finds that all have seen g: direct
///     the segment is gone (another id):
///     generation = 0                       -->  closes the mapping; seen: generation 0
///     the entry is free when no member's `seen` is g
///
/// CUDA never reuses an allocation's id, so the id distinguishes a new segment from an old one at the same address.
/// Each call checks whether one of this rank's segments has been freed. A peer keeps a freed segment's memory mapped
/// until this check, and then until the peer's own next call. At most `most_segments` segments of a rank are affected;
/// the check reaches each of them within as many calls of the rank as the rank has mapped segments.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "beeline/collectives/impl/vector_mappings.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Interface to memory: finds, shares and maps segments. One thread at a time may call it.
class SegmentMemory {
 public:
  struct Segment {
    std::uintptr_t start = 0;
    std::size_t bytes = 0;  ///< 0: no segment
    std::uint64_t id = 0;   ///< unique, also among freed segments
  };
  using Handle = std::array<unsigned char, 64>;

  virtual ~SegmentMemory() = default;
  /// Id of the segment that contains an address; 0: none. Fast, since every call uses it.
  [[nodiscard]] virtual std::uint64_t id_at(std::uintptr_t address) const = 0;
  [[nodiscard]] virtual Segment segment_at(std::uintptr_t address) const = 0;
  /// A handle of a segment of this rank for the other members; throws if the segment cannot be shared.
  [[nodiscard]] virtual Handle share(std::uintptr_t start) const = 0;
  /// Maps a segment that `owner` has shared, and returns its address on this rank; throws if that is impossible.
  [[nodiscard]] virtual std::uintptr_t open(int owner, std::uintptr_t start, const Handle& handle) = 0;
  virtual void close(int owner, std::uintptr_t address) = 0;
};

/// The mappings of ordinary memory between the ranks of a world, for `CollectiveCall::mappings`; see the top of this
/// file.
class SegmentMappings {
 public:
  static constexpr std::size_t most_segments = 256;  ///< largest number of mapped segments of a rank

  /// Collective over the world, which has at most detail::most_mapping_members ranks.
  ///   memory  nullptr: CUDA's memory on a GPU rank; on a host rank nothing is mapped, since ranks of one process reach
  ///           all of its memory
  explicit SegmentMappings(World& world, std::unique_ptr<SegmentMemory> memory = nullptr);
  /// Collective. All calls with these mappings must have ended.
  ~SegmentMappings();
  SegmentMappings(const SegmentMappings&) = delete;
  SegmentMappings& operator=(const SegmentMappings&) = delete;

  struct Vector {
    const void* at;
    std::size_t bytes;
  };
  /// The addresses at which the members of `team` reach two vectors of this rank. Publishes the vectors' segments to
  /// peers that do not know them, and maps segments that peers have published, without waiting. Any thread of a rank
  /// may call it, one thread at a time.
  ///   is_captured  the call is captured in a graph: it uses only earlier mappings; as for every kernel of a graph, the
  ///                caller keeps the memory as long as the graph
  [[nodiscard]] detail::VectorMappings find(Team& team, Vector destination, Vector source, bool is_captured = false);
  /// Why the vectors of the latest `find` cannot be mapped; empty if they are mapped, or will be once all peers have
  /// called `find`.
  [[nodiscard]] std::string reason() const;

 private:
  class Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

}  // namespace beeline
