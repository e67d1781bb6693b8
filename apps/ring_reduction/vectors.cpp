// SPDX-License-Identifier: Apache-2.0
#include "vectors.hpp"

#include <algorithm>

#include "common/sampling.hpp"
#include "device_packets.hpp"
#include "problem.hpp"
#include "task.hpp"

namespace ring_reduction {

Vectors::Vectors(beeline::World& world, std::size_t count, const Shape& shape)
    : world_(world), shape_(shape), count_(count), data_(world, std::max<std::size_t>(count, 1)),
      inbox_(world, std::max<std::size_t>(inbox_elements(count, static_cast<std::uint32_t>(world.size())), 1)) {}

Vectors::Heaps Vectors::heaps(std::size_t count, int ranks, bool gpus) {
  constexpr std::size_t margin = std::size_t{4} << 20;  // signals, states of packet rings, alignment
  const std::size_t elements = count + inbox_elements(count, static_cast<std::uint32_t>(ranks));
  return {elements * sizeof(float) + packet_ring_bytes(ranks, gpus ? most_packet_lanes : 1) +
              task_queue_bytes(ranks, gpus ? most_task_lanes : 1) + margin,
          margin};
}

void Vectors::fill(std::uint32_t set) {
  world_.barrier();  // no transfer to this rank is still in flight
  if (count_ > 0)
    beeline::launch(world_, {.blocks = blocks_for(world_, count_), .threads = block_threads}, apps::Fill{}, data(),
                    count_, set);
  world_.synchronize();
  world_.barrier();
}

std::vector<float> Vectors::values() {
  std::vector<float> all(count_);
  world_.copy(all.data(), data(), count_ * sizeof(float));
  return all;
}

Ring Vectors::ring(std::size_t chunk_bytes) const {
  return make_ring(count_, static_cast<std::uint32_t>(world_.size()), static_cast<std::uint32_t>(world_.rank()),
                   chunk_bytes);
}

LaneShape Vectors::agree_on_lanes(const Ring& ring, LaneShape on_gpus, unsigned resident) const {
  const std::vector<unsigned> all = apps::from_all(world_, std::max(1u, resident));
  const unsigned most = *std::min_element(all.begin(), all.end());
  const LaneShape usual = world_.device().is_gpu() ? on_gpus : LaneShape{1, 1};
  const unsigned lanes = std::min({shape_.lanes > 0 ? shape_.lanes : usual.lanes, ring.chunks, most});
  const bool may_share = on_gpus.blocks > 1;
  const unsigned blocks = may_share && shape_.blocks > 0 ? shape_.blocks : usual.blocks;
  return {lanes, std::clamp(most / lanes, 1u, blocks)};
}

unsigned blocks_for(const beeline::World& world, std::size_t count) {
  if (!world.device().is_gpu()) return 1;
  constexpr std::size_t elements_of_a_block = 4 * grain * block_threads;
  const std::size_t most = 2 * static_cast<std::size_t>(world.device().multiprocessors);
  return static_cast<unsigned>(
      std::clamp((count + elements_of_a_block - 1) / elements_of_a_block, std::size_t{1}, most));
}

}  // namespace ring_reduction
