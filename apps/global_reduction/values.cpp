// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <algorithm>

#include "problem.hpp"

namespace global_reduction {

namespace {

/// A kernel that does only the local reduction.
struct SumLocally {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Input input, double* local) const {
    static_cast<void>(sum_in_last_block(grid, input, local));
  }
};

}  // namespace

Values::Values(beeline::World& world, std::size_t count, unsigned host_blocks)
    : world_(world), count_(count), host_blocks_(host_blocks), values_(world, count), sums_(world, 2),
      block_sums_(world, max_blocks),
      scratch_(world, host_blocks * static_cast<std::size_t>(world.config().host_threads)),
      finished_(world, 1), input_{values_.data(), count, block_sums_.data(), scratch_.data(), finished_.data()} {}

void Values::fill(std::uint32_t set) {
  const unsigned blocks = this->blocks<apps::Fill, float*, std::size_t, std::uint32_t>();
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, apps::Fill{}, values_.data(), count_, set);
  world_.stream().fill(sums_.data(), 0, sums_.bytes());
  world_.synchronize();
  world_.barrier();
}

void Values::enqueue_local_sum() {
  const unsigned blocks = this->blocks<SumLocally, Input, double*>();
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, SumLocally{}, input_, local());
}

double Values::total() {
  double total = 0;
  world_.copy(&total, global(), sizeof total);
  return total;
}

unsigned Values::blocks_of(unsigned resident) const {
  if (!world_.device().is_gpu()) return host_blocks_;
  constexpr std::size_t values_of_a_block = 16 * block_threads;
  const std::size_t wanted = std::clamp<std::size_t>(count_ / values_of_a_block, 1, max_blocks);
  return static_cast<unsigned>(std::clamp<std::size_t>(wanted, 1, std::max(resident, 1u)));
}

}  // namespace global_reduction
