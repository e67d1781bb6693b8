// SPDX-License-Identifier: Apache-2.0
#include "harness/timed_grid.hpp"

#include <fmt/format.h>

namespace beeline::bench {

namespace {
constexpr unsigned default_threads = 512;  // the kernels' registers do not allow 1024
}

unsigned grid_threads(const Bench& bench) {
  const World& world = bench.world();
  if (!world.device().is_gpu()) return static_cast<unsigned>(world.config().host_threads);
  return bench.options().threads_per_block != 0 ? bench.options().threads_per_block : default_threads;
}

std::vector<GridShape> grid_shapes(const Bench& bench, unsigned most_blocks) {
  const unsigned threads = grid_threads(bench), asked = bench.options().blocks;
  const Device& device = bench.world().device();
  if (!device.is_gpu()) return {{1, threads}};
  require(most_blocks >= std::max(asked, 1u), Status::no_resource,
          fmt::format("{} blocks of {} threads cannot wait at once on this device: at most {} can", std::max(asked, 1u),
                      threads, most_blocks));
  if (asked != 0) return {{asked, threads}};
  const unsigned largest = std::min(most_blocks, static_cast<unsigned>(device.multiprocessors));
  std::vector<GridShape> shapes;
  for (unsigned blocks : {8u, 16u, 32u, 64u})
    if (blocks < largest) shapes.push_back({blocks, threads});
  shapes.push_back({largest, threads});
  return shapes;
}

std::vector<unsigned> block_sweep(const Bench& bench, unsigned most_blocks) {
  const Device& device = bench.world().device(0);
  if (!device.is_gpu()) return {1};
  const unsigned largest = std::min(most_blocks, static_cast<unsigned>(device.multiprocessors));
  std::vector<unsigned> sweep;
  for (unsigned blocks : {1u, 8u, 32u})
    if (blocks < largest) sweep.push_back(blocks);
  if (largest > 0) sweep.push_back(largest);
  return sweep;
}

}  // namespace beeline::bench
