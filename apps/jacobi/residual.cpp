// SPDX-License-Identifier: Apache-2.0
#include "residual.hpp"

#include <bit>

#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/scalar_machine.hpp"

namespace jacobi {

namespace {

/// Stores the bits of the largest difference of the two buffers in `*bits`. The bit patterns of nonnegative floats are
/// ordered like the floats, and NaN has the largest.
struct MaxChange {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Fields f, std::uint32_t* bits) const {
    std::uint32_t mine = 0;
    const auto first = static_cast<std::size_t>(f.row), end = first * static_cast<std::size_t>(f.rows + 1);
    for (std::size_t n = first + grid.thread_rank(); n < end; n += grid.size()) {
      constexpr std::uint32_t without_sign = 0x7fffffff;
      const std::uint32_t change = beeline::machine::bits_of(f.even[n] - f.odd[n]) & without_sign;
      if (change > mine) mine = change;
    }
    const beeline::machine::DeviceAtomic<std::uint32_t> largest(*bits);
    if (mine > largest.load(std::memory_order_relaxed)) largest.fetch_max(mine, std::memory_order_relaxed);
  }
};

}  // namespace

Residual::Residual(Domain& domain)
    : domain_(domain), collectives_(domain.world(), {.sessions = 1}), bits_(domain.world(), 1),
      blocks_(domain.blocks<MaxChange, Fields, std::uint32_t*>(domain.all())) {}

float Residual::max_change() {
  beeline::World& world = domain_.world();
  world.stream().fill(bits_.data(), 0, bits_.bytes());
  beeline::launch(world, {.blocks = blocks_, .threads = block_threads}, MaxChange{}, domain_.fields(), bits_.data());
  collectives_.allreduce_on_stream(bits_.data(), bits_.data(), 1, beeline::ElementType::uint32,
                                   beeline::Reduction::maximum);
  world.synchronize();
  std::uint32_t bits = 0;
  world.copy(&bits, bits_.data(), sizeof bits);
  return std::bit_cast<float>(bits);
}

}  // namespace jacobi
