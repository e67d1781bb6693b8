// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ring all-reduce as data: what each rank sends to the next and receives from the previous one, step by step.
/// Every scheme follows these lists; other drivers (an engine, triggers, a simulator) can read them, too.
///
/// The vector has a part for each rank; a part is cut into chunks, which travel independently. In the first `ranks` - 1
/// steps (reduce-scatter) a rank adds each chunk that it receives to its own values, and sends the sum in the next
/// step. In `ranks` - 1 more steps (all-gather) it stores each chunk that it receives, which is a result, and sends the
/// result on. Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "beeline/core/macros.hpp"

namespace ring_reduction {

/// Elements [first, first + count) of the vector.
struct Range {
  std::size_t first, count;
  friend bool operator==(const Range&, const Range&) = default;
};

/// The work of one rank for one chunk in one step. The next rank receives exactly what this rank sends.
struct Transfer {
  std::uint32_t step, chunk;
  Range sends;     ///< to the next rank
  Range receives;  ///< from the previous rank; sent on in the next step
  bool reduces;    ///< true: the received chunk is added to `receives`; false: it replaces `receives`
  /// Where the received chunk lies until it is added: offset in the receiver's inbox, in elements, the same on all
  /// ranks. Each step of the reduce-scatter has its own offsets.
  std::size_t inbox;
};

/// Parts and chunks begin at multiples of this number of elements, so that all accesses can have 16 bytes.
inline constexpr std::size_t grain = 4;

/// One rank's position in the ring, and the division of the vector.
struct Ring {
  std::size_t count;  ///< elements of the vector; parts at its end are shorter, or empty
  std::uint32_t ranks, rank;
  std::uint32_t chunks;        ///< of a part, at least 1
  std::size_t part_elements;   ///< of a whole part, a multiple of `grain`
  std::size_t chunk_elements;  ///< of a whole chunk, a multiple of `grain`

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t next() const { return rank + 1 == ranks ? 0 : rank + 1; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t previous() const { return rank == 0 ? ranks - 1 : rank - 1; }
  /// Steps of a reduction: 0 for one rank.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t steps() const { return 2 * (ranks - 1); }

  [[nodiscard]] BEELINE_HOST_DEVICE Range range(std::uint32_t part, std::uint32_t chunk) const {
    const std::size_t begin = part * part_elements, end = begin + part_elements;
    const std::size_t first = least(begin + chunk * chunk_elements, least(end, count));
    const std::size_t last = least(begin + (chunk + std::size_t{1}) * chunk_elements, least(end, count));
    return {first, last - first};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Transfer transfer(std::uint32_t step, std::uint32_t chunk) const {
    const std::uint32_t part = (rank + 2 * ranks - step) % ranks;
    return {.step = step,
            .chunk = chunk,
            .sends = range(part, chunk),
            .receives = range(part == 0 ? ranks - 1 : part - 1, chunk),
            .reduces = step + 1 < ranks,
            .inbox = step * part_elements + chunk * chunk_elements};
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
};

/// The ring of `ranks` ranks over `count` elements, with chunks of at most `chunk_bytes` (but at least one `grain`).
[[nodiscard]] Ring make_ring(std::size_t count, std::uint32_t ranks, std::uint32_t rank, std::size_t chunk_bytes);

/// Elements of the inbox that the reduce-scatter needs on each rank.
[[nodiscard]] std::size_t inbox_elements(std::size_t count, std::uint32_t ranks);

/// All transfers of `ring.rank` in one reduction: step after step, and chunk after chunk within a step.
[[nodiscard]] std::vector<Transfer> transfers(const Ring& ring);

}  // namespace ring_reduction
