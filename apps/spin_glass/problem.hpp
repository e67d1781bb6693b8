// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a periodic 3-D lattice of spins with random couplings, and the ranks' slabs of it along z.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/memory_budget.hpp"

namespace spin_glass {

/// Sites of the whole lattice, an even number along each axis, so that its two colours alternate across its borders,
/// too.
struct Size {
  std::uint32_t x, y, z;
  [[nodiscard]] std::uint64_t sites() const { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Size&, const Size&) = default;
};

enum class Couplings : std::uint8_t { plus_minus, gaussian };

/// What a run computes, beside the lattice.
struct Model {
  Couplings couplings = Couplings::plus_minus;
  std::uint32_t heat_bath = 0;  ///< each sweep whose number is a multiple of it is a heat bath; 0: none is
  double temperature = 1;       ///< of heat baths, in units of the couplings' standard deviation
};

/// Parses the name of a kind of couplings. Throws invalid_argument for others.
[[nodiscard]] Couplings parse_couplings(const std::string& text);

/// Parses lattices separated by commas: `N` is N x N x N, otherwise XxYxZ; with `weak` z is that of each rank. Throws
/// invalid_argument, and names the faulty part, for other texts and for numbers that are odd or not within 2 to 4096.
[[nodiscard]] std::vector<Size> parse_sizes(const std::string& text, int ranks, bool weak);

/// The planes of one rank.
struct Slab {
  std::uint32_t first, planes;
};

/// The slab of `rank` among `ranks`: contiguous; slabs differ by at most one plane. Throws invalid_argument when there
/// are more ranks than planes.
[[nodiscard]] Slab slab_of(const Size& size, int ranks, int rank);

/// Sets the heap sizes of `config` for the lattices, which are measured one after the other; throws as `slab_of` and
/// `apps::fit` do.
///   verify  rank 0 also holds the serial reference
void fit(beeline::Config& config, const std::vector<Size>& sizes, bool verify, const apps::Machine& machine);

}  // namespace spin_glass
