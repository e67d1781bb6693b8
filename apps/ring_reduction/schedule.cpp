// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <algorithm>

namespace ring_reduction {

namespace {

constexpr std::size_t divide_up(std::size_t value, std::size_t by) { return value / by + (value % by != 0 ? 1 : 0); }
constexpr std::size_t whole_grains(std::size_t elements) { return divide_up(elements, grain) * grain; }

std::size_t part_of(std::size_t count, std::uint32_t ranks) { return whole_grains(divide_up(count, ranks)); }

}  // namespace

Ring make_ring(std::size_t count, std::uint32_t ranks, std::uint32_t rank, std::size_t chunk_bytes) {
  const std::size_t part = part_of(count, ranks);
  const std::size_t chunk = std::max(chunk_bytes / sizeof(float) / grain * grain, grain);
  const std::size_t chunks = std::max<std::size_t>(divide_up(part, chunk), 1);
  // All chunks have about the same size; no part ends with a short chunk.
  return {.count = count,
          .ranks = ranks,
          .rank = rank,
          .chunks = static_cast<std::uint32_t>(chunks),
          .part_elements = part,
          .chunk_elements = whole_grains(divide_up(part, chunks))};
}

std::size_t inbox_elements(std::size_t count, std::uint32_t ranks) { return (ranks - 1) * part_of(count, ranks); }

std::vector<Transfer> transfers(const Ring& ring) {
  std::vector<Transfer> all;
  all.reserve(std::size_t{ring.steps()} * ring.chunks);
  for (std::uint32_t step = 0; step < ring.steps(); ++step)
    for (std::uint32_t chunk = 0; chunk < ring.chunks; ++chunk) all.push_back(ring.transfer(step, chunk));
  return all;
}

}  // namespace ring_reduction
