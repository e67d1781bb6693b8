// SPDX-License-Identifier: Apache-2.0
#include "hpe/small_kernel.hpp"

#include "beeline/hpe/launch.hpp"

namespace beeline::bench::hpe {

namespace {
struct AddOne {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint32_t* words, std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) ++words[i];
  }
};
}  // namespace

void launch_small(beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count) {
  const unsigned blocks = stream.device().is_gpu() ? 8 : 1;
  beeline::hpe::launch(stream, {.blocks = blocks, .threads = 256}, AddOne{}, words, count);
}

}  // namespace beeline::bench::hpe
