// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "beeline/device/impl/scalar_machine.hpp"
#include "beeline/device/wait.hpp"

namespace spin_glass {

namespace {

/// Steps of the sum of energies: a sum of whole numbers does not depend on its order.
constexpr double steps_of_energy = 16'777'216;

struct FillSpins {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Lattice& lattice) const {
    const std::uint64_t area = lattice.area(), sites = area * (lattice.planes + 2);
    for (unsigned colour = 0; colour < colours; ++colour)
      for (std::uint64_t i = grid.thread_rank(); i < sites; i += grid.size()) {
        const auto plane = static_cast<std::uint32_t>(i / area), at = static_cast<std::uint32_t>(i - plane * area);
        const std::uint32_t row = at / lattice.half_x;
        const std::uint64_t site = lattice.site(colour, at - row * lattice.half_x, row, plane);
        store_spin(lattice.spins[colour] + lattice.offset(plane), static_cast<int>(area), static_cast<int>(at),
                   initial_spin(site));
      }
  }
};

struct FillCouplings {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Lattice& lattice,
                                      Couplings kind) const {
    const std::uint64_t area = lattice.area(), sites = area * (lattice.planes + 1);
    for (unsigned colour = 0; colour < colours; ++colour)
      for (std::uint64_t i = grid.thread_rank(); i < sites; i += grid.size()) {
        const auto plane = static_cast<std::uint32_t>(i / area), at = static_cast<std::uint32_t>(i - plane * area);
        const std::uint32_t row = at / lattice.half_x;
        const std::uint64_t site = lattice.site(colour, at - row * lattice.half_x, row, plane);
        for (std::uint32_t axis = 0; axis < components; ++axis)
          lattice.couplings[colour][lattice.offset(plane) + axis * area + at] = coupling(kind, site, axis);
      }
  }
};

constexpr float infinite = std::numeric_limits<float>::infinity();

struct SumUp {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Lattice& lattice,
                                      std::uint64_t* sums) const {
    const std::uint32_t area = lattice.area(), sites = area * lattice.planes;
    std::int64_t energy = 0;
    float error = 0;
    for (unsigned colour = 0; colour < colours; ++colour)
      for (std::uint32_t i = grid.thread_rank(); i < sites; i += grid.size()) {
        const std::uint32_t plane = 1 + i / area, at = i % area, row = at / lattice.half_x;
        const Sheet sheet(lattice, colour, plane);
        const Distances to =
            Distances::of(lattice, lattice.shift_of(colour, row, plane), row, at - row * lattice.half_x);
        const Spin spin = load_spin(sheet.own, sheet.area, static_cast<int>(at));
        const float part = dot(spin, sheet.forward_field(static_cast<int>(at), to));
        if (part == part) energy -= static_cast<std::int64_t>(static_cast<double>(part) * steps_of_energy);
        const float difference = dot(spin, spin) - 1, magnitude = difference < 0 ? -difference : difference;
        // A spin that is not a number has an error that every maximum keeps.
        if (!(magnitude <= error)) error = magnitude == magnitude ? magnitude : infinite;
      }
    beeline::machine::reduce_add(&sums[0], static_cast<std::uint64_t>(energy));
    // Bits of numbers that are not negative have the order of the numbers.
    beeline::detail::DeviceAtomic<std::uint64_t>(sums[1]).fetch_max(beeline::machine::bits_of(error),
                                                                    std::memory_order_relaxed);
  }
};

std::size_t floats_of(const Size& size, std::uint32_t planes) {
  return std::size_t{planes} * components * size.y * (size.x / 2);
}

}  // namespace

Domain::Domain(beeline::World& world, const Size& size, const Model& model)
    : world_(world), size_(size), model_(model), slab_(slab_of(size, world.size(), world.rank())),
      spins_(world, colours * floats_of(size, slab_of(size, world.size(), 0).planes + 2)),
      couplings_(world, colours * floats_of(size, slab_of(size, world.size(), 0).planes + 1)),
      sums_(world, 2), lattice_{size.x / 2,
                                size.y,
                                slab_.planes,
                                slab_.first,
                                size.z,
                                {spins_.data(), spins_.data() + spins_.count() / 2},
                                {couplings_.data(), couplings_.data() + couplings_.count() / 2}} {
  const int ranks = world.size(), below = (world.rank() + ranks - 1) % ranks, above = (world.rank() + 1) % ranks;
  edges_[lower] = {static_cast<std::uint32_t>(below), 1, 0, slab_of(size, ranks, below).planes + 1};
  edges_[upper] = {static_cast<std::uint32_t>(above), slab_.planes, slab_.planes + 1, 0};
  const unsigned blocks = this->blocks<FillCouplings, Lattice, Couplings>(size.sites());
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, FillCouplings{}, lattice_, model.couplings);
  reset();
}

void Domain::reset() {
  sweep_ = 0;
  world_.barrier();  // no neighbour still writes to a halo
  const unsigned blocks = this->blocks<FillSpins, Lattice>(size_.sites());
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, FillSpins{}, lattice_);
  world_.synchronize();
  world_.barrier();
}

Totals Domain::totals() {
  const unsigned blocks = this->blocks<SumUp, Lattice, std::uint64_t*>(size_.sites());
  world_.stream().fill(sums_.data(), 0, sums_.bytes());
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, SumUp{}, lattice_, sums_.data());
  world_.synchronize();
  std::uint64_t mine[2];
  world_.copy(mine, sums_.data(), sizeof mine);
  const auto energy = world_.allreduce(static_cast<std::int64_t>(mine[0]));
  const float error =
      world_.allreduce(std::bit_cast<float>(static_cast<std::uint32_t>(mine[1])), beeline::Reduction::maximum);
  return {static_cast<double>(energy) / steps_of_energy / static_cast<double>(size_.sites()),
          static_cast<double>(error)};
}

std::vector<float> Domain::gather() {
  std::vector<float> all(world_.rank() == 0 ? 3 * size_.sites() : 0);
  world_.barrier();
  for (int rank = 0; rank < world_.size() && world_.rank() == 0; ++rank) {
    const Slab slab = slab_of(size_, world_.size(), rank);
    for (unsigned colour = 0; colour < colours; ++colour)
      world_.copy(all.data() + colour * all.size() / 2 + lattice_.offset(slab.first),
                  world_.at(lattice_.spins[colour], rank) + lattice_.offset(1),
                  lattice_.offset(slab.planes) * sizeof(float));
  }
  world_.barrier();
  return all;
}

std::uint32_t Domain::take_sweeps(int sweeps) {
  const std::uint32_t first = sweep_ + 1;
  sweep_ += static_cast<std::uint32_t>(sweeps);
  return first;
}

std::size_t Domain::bytes(const Size& size, int ranks) {
  const std::uint32_t planes = slab_of(size, ranks, 0).planes;
  return colours * (floats_of(size, planes + 2) + floats_of(size, planes + 1)) * sizeof(float);
}

std::size_t Domain::pinned_bytes(const Size& size) {
  constexpr std::size_t planes = sides + colours * sides;  // to send, and received
  return planes * floats_of(size, 1) * sizeof(float);
}

unsigned Domain::blocks_of(std::uint64_t sites, unsigned resident) const {
  if (!world_.device().is_gpu()) return 1;
  const std::uint64_t wanted = (sites + block_threads - 1) / block_threads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, std::max(resident, 1u)));
}

}  // namespace spin_glass
