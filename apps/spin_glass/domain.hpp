// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's slab of the lattice, and the common parts of all methods.

#include <cstdint>
#include <vector>

#include "beeline/host/launch.hpp"
#include "common/copy_bandwidth.hpp"
#include "update.hpp"

namespace spin_glass {

/// The two neighbours of a slab; slabs form a ring.
enum Side : unsigned { lower, upper };
inline constexpr unsigned sides = 2;
[[nodiscard]] BEELINE_HOST_DEVICE constexpr unsigned opposite(unsigned side) { return 1 - side; }

/// Exchange with the neighbour at one side, in planes.
struct Edge {
  std::uint32_t peer;
  std::uint32_t mine, halo;  ///< the plane to send, and the halo that the neighbour fills
  std::uint32_t theirs;      ///< the neighbour's halo that `mine` goes to
};

/// Sums over all sites; the same bits for any number of ranks.
struct Totals {
  double energy;        ///< of a site, in units of the couplings' standard deviation
  double length_error;  ///< largest difference of a spin's squared length from 1
};

/// The slab of a rank. Constructor and destructor are collective.
class Domain {
 public:
  Domain(beeline::World& world, const Size& size, const Model& model);

  /// Collective. The spins before the first sweep, halos included.
  void reset();
  /// Collective. Energy and lengths of the present spins. No method may run meanwhile.
  [[nodiscard]] Totals totals();
  /// Collective. All spins, on rank 0: [colours, z, components, y, x / 2]. Empty on the other ranks.
  [[nodiscard]] std::vector<float> gather();

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Size& size() const { return size_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const Lattice& lattice() const { return lattice_; }
  [[nodiscard]] const Edge& edge(unsigned side) const { return edges_[side]; }
  [[nodiscard]] std::size_t plane_bytes() const { return lattice_.offset(1) * sizeof(float); }
  /// The planes next to neighbours, and the planes between them.
  [[nodiscard]] Planes boundary() const { return {1, lattice_.planes > 1 ? 2u : 1u, lattice_.planes - 1}; }
  [[nodiscard]] Planes bulk() const { return {2, lattice_.planes > 2 ? lattice_.planes - 2 : 0, 1}; }
  /// Takes the next `sweeps`; returns the number of the first, from 1 on since `reset`.
  [[nodiscard]] std::uint32_t take_sweeps(int sweeps);
  /// Blocks of a launch of `Kernel` over `sites` sites; all blocks may wait.
  template <class Kernel, class... Args>
  [[nodiscard]] unsigned blocks(std::uint64_t sites) const {
    return blocks_of(sites, beeline::resident_blocks<Kernel, Args...>(world_, block_threads));
  }

  /// Symmetric memory of a rank, and pinned memory.
  [[nodiscard]] static std::size_t bytes(const Size& size, int ranks);
  [[nodiscard]] static std::size_t pinned_bytes(const Size& size);

 private:
  [[nodiscard]] unsigned blocks_of(std::uint64_t sites, unsigned resident) const;

  beeline::World& world_;
  const Size size_;
  const Model model_;
  const Slab slab_;
  beeline::SymmetricArray<float> spins_, couplings_;
  beeline::SymmetricArray<std::uint64_t> sums_;  ///< energy in fixed point, bits of the largest error of a length
  Lattice lattice_;
  Edge edges_[sides];
  std::uint32_t sweep_ = 0;
};

}  // namespace spin_glass
