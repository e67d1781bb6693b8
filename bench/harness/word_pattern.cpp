// SPDX-License-Identifier: Apache-2.0
#include "harness/word_pattern.hpp"

#include "beeline/device/wait.hpp"
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
    if (mine != 0) detail::SystemAtomic<std::uint64_t>(*wrong).fetch_add(mine, cuda::memory_order_relaxed);
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
  std::uint64_t wrong = 0;
  world.copy(wrong_.data(), &wrong, sizeof wrong);
  launch(world, whole_device(world), CountWrong{}, range, seed, wrong_.data());
  world.synchronize();
  world.copy(&wrong, wrong_.data(), sizeof wrong);
  return wrong == 0;
}

}  // namespace beeline::bench
