// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A slab in two halves, each computed by a kernel of its own, so that one half's planes travel while the other is
/// computed: send bottom, compute top, wait bottom, send top, compute bottom, wait top.
/// Source: seed 000 sections 4.5.2 and 5.8.2.

#include "domain.hpp"

namespace himeno {

/// Updates a range of planes.
struct UpdateHalf {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Fields f, Tiling tiling, Sums sums,
                                      Planes part, int iteration, unsigned slot) const {
    store_block_gosa(grid, sums, slot, update_planes(grid, f, tiling, iteration, part));
  }
};

/// The kernels of both halves.
class Halves {
 public:
  explicit Halves(const Domain& domain) : domain_(domain), parts_(domain.halves()) {
    shape_ = domain.shape<UpdateHalf, Fields, Tiling, Sums, Planes, int, unsigned>();
    for (unsigned half = 0; half < 2; ++half)
      tilings_[half] = domain.tiling(shape_.blocks, parts_[half].last - parts_[half].first);
  }

  [[nodiscard]] const Planes& part(unsigned half) const { return parts_[half]; }
  /// Whether the half contains the outermost plane of a side that has a peer. The only plane of a slab belongs to both
  /// sides.
  [[nodiscard]] bool touches(unsigned half, unsigned side) const { return domain_.edges().touched(side, parts_[half]); }
  [[nodiscard]] unsigned blocks() const { return shape_.blocks; }

  /// Starts the computation of one half on the default stream; the blocks store their sums in slot `half`.
  void launch(unsigned half, int iteration) const { launch(half, iteration, domain_.fields()); }
  /// The same with other arrays of the domain's shape.
  void launch(unsigned half, int iteration, const Fields& fields) const {
    if (parts_[half].empty()) return;
    beeline::launch(domain_.world(), {.blocks = shape_.blocks, .threads = shape_.threads}, UpdateHalf{}, fields,
                    tilings_[half], domain_.sums(), parts_[half], iteration, half);
  }

 private:
  const Domain& domain_;
  std::array<Planes, 2> parts_;
  Shape shape_{};
  Tiling tilings_[2]{};
};

}  // namespace himeno
