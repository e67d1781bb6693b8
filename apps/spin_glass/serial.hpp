// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The reference: loops over the sites of the whole lattice, in its own arrangement of memory. It shares with the
/// methods the update of one site (rules.hpp). Threads may share the planes: sites of one colour do not read each
/// other.

#include <vector>

#include "rules.hpp"

namespace spin_glass {

class Serial {
 public:
  Serial(const Size& size, const Model& model, int threads = 1);

  /// Runs `sweeps` more sweeps.
  void advance(int sweeps);
  /// The spins in the order of `Domain::gather`.
  [[nodiscard]] std::vector<float> field() const;

 private:
  void advance_colour(const Rule& rule, std::uint32_t colour, std::uint32_t first_z, std::uint32_t last_z);
  [[nodiscard]] std::size_t at(std::uint32_t x, std::uint32_t y, std::uint32_t z) const {
    return (std::size_t{z % size_.z} * size_.y + y % size_.y) * size_.x + x % size_.x;
  }
  [[nodiscard]] Spin local_field(std::uint32_t x, std::uint32_t y, std::uint32_t z) const;

  Size size_;
  Model model_;
  int threads_;
  std::uint32_t sweep_ = 0;
  std::vector<Spin> spins_;
  std::vector<float> couplings_;  ///< [sites, 3]
};

}  // namespace spin_glass
