// SPDX-License-Identifier: Apache-2.0
#include "harness/word_pattern.hpp"

#include "beeline/host/launch.hpp"
#include "harness/random.hpp"

namespace beeline::bench {

namespace {

struct FillWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, WordRange range, std::uint64_t seed) const {
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size())
      range.words[i * range.stride] = random_word(seed, i);
  }
};

struct CountWrong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, WordRange range, std::uint64_t seed,
                                      std::uint64_t* wrong) const {
    std::uint64_t mine = 0;
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size())
      mine += range.words[i * range.stride] != random_word(seed, i) ? 1 : 0;
    add_to(wrong, mine);
  }
};

LaunchOptions whole_device(const World& world) {
  const Device& device = world.device();
  return {.blocks = device.is_gpu() ? 4 * static_cast<unsigned>(device.multiprocessors) : 1, .threads = 256};
}

}  // namespace

void WordPattern::fill(const WordRange& range, std::uint64_t seed) {
  World& world = bench_.world();
  launch(world, whole_device(world), FillWords{}, range, seed);
  world.synchronize();
}

bool WordPattern::holds(const WordRange& range, std::uint64_t seed) {
  World& world = bench_.world();
  return wrong_.after(
             [&](std::uint64_t* wrong) { launch(world, whole_device(world), CountWrong{}, range, seed, wrong); }) == 0;
}

}  // namespace beeline::bench
