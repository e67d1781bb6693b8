// SPDX-License-Identifier: Apache-2.0
#include "harness/thread_sweep.hpp"

#include "beeline/core/error.hpp"

namespace beeline::bench {

std::vector<ThreadShape> thread_shapes(const Bench& bench, unsigned most_blocks) {
  const World& world = bench.world();
  const bool on_gpu = world.device().is_gpu();
  require(most_blocks > 0, Status::no_resource, "no block of threads could be resident on every rank");
  const auto team = static_cast<unsigned>(world.config().host_threads);
  const unsigned most = on_gpu ? most_sweep_threads : team;
  std::vector<ThreadShape> shapes;
  for (unsigned active = 1; active <= most; active *= 2) {
    const unsigned threads = on_gpu ? std::min(active, sweep_block_threads) : team;
    const unsigned blocks = on_gpu ? active / threads : 1;
    if (blocks <= most_blocks) shapes.push_back({active, {blocks, threads}});
  }
  return shapes;
}

}  // namespace beeline::bench
