// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's part of the lattice in memory, and the update of its sites.

#include <cstddef>
#include <cstdint>

#include "rules.hpp"

namespace spin_glass {

inline constexpr unsigned colours = 2, components = 3;

/// Threads of a block of every launch on a GPU, and the rectangle of a plane that a block updates at once. Sites of a
/// rectangle share neighbours, which the multiprocessor then loads once.
inline constexpr std::uint32_t tile_columns = 32, tile_rows = 8, block_threads = tile_columns * tile_rows;
/// Consecutive planes at most in which a block of a GPU updates a rectangle. Each thread keeps the spins above and
/// below it in registers: they are loaded once, not three times, and positions are computed once. Neither this nor
/// other numbers of planes have been measured.
inline constexpr std::uint32_t most_planes_of_tile = 4;

/// A rank's planes. Each colour has an array of its own, whose rows hold every second site along x. A plane of a colour
/// is contiguous, so that one message carries it. Plane 0 and plane `planes` + 1 are halos.
struct Lattice {
  std::uint32_t half_x, y, planes;  ///< sites of a colour in a row; rows of a plane; own planes
  std::uint32_t first_z, size_z;    ///< z of plane 1; planes of the whole lattice
  float* spins[colours];            ///< [planes + 2, components, y, half_x]
  float* couplings[colours];        ///< [planes + 1, axes, y, half_x] with the next site along each axis

  /// Without an index, so that kernels keep the pointers in registers, as addresses in global memory.
  [[nodiscard]] BEELINE_HOST_DEVICE float* spins_of(unsigned colour) const { return colour == 0 ? spins[0] : spins[1]; }
  [[nodiscard]] BEELINE_HOST_DEVICE float* couplings_of(unsigned colour) const {
    return colour == 0 ? couplings[0] : couplings[1];
  }
  /// Sites of one colour in a plane.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t area() const { return half_x * y; }
  /// Position of a plane in both arrays.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t offset(std::uint32_t plane) const {
    return std::size_t{plane} * components * area();
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t z_of(std::uint32_t plane) const {
    return (first_z + size_z + plane - 1) % size_z;
  }
  /// 1 if the row's sites of this colour are those with odd x.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t shift_of(unsigned colour, std::uint32_t row,
                                                           std::uint32_t plane) const {
    return (colour + row + z_of(plane)) & 1u;
  }
  /// Number of a site in the whole lattice.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t site(unsigned colour, std::uint32_t column, std::uint32_t row,
                                                       std::uint32_t plane) const {
    return (std::uint64_t{z_of(plane)} * y + row) * (2 * half_x) + 2 * column + shift_of(colour, row, plane);
  }
};

[[nodiscard]] BEELINE_HOST_DEVICE inline Spin load_spin(const float* plane, int area, int at) {
  return {plane[at], plane[area + at], plane[2 * area + at]};
}
BEELINE_HOST_DEVICE inline void store_spin(float* plane, int area, int at, const Spin& spin) {
  plane[at] = spin.x, plane[area + at] = spin.y, plane[2 * area + at] = spin.z;
}

/// Distances in memory from a site to its neighbours in its plane.
struct Distances {
  int next_x, previous_x, next_y, previous_y;

  [[nodiscard]] BEELINE_HOST_DEVICE static Distances of(const Lattice& lattice, std::uint32_t shift, std::uint32_t row,
                                                        std::uint32_t column) {
    const int last = static_cast<int>(lattice.half_x) - 1, around = static_cast<int>(lattice.area() - lattice.half_x);
    const int up = column < lattice.half_x - 1 ? 1 : -last, down = column > 0 ? -1 : last;
    return {shift == 0 ? 0 : up, shift == 0 ? down : 0, row < lattice.y - 1 ? last + 1 : -around,
            row > 0 ? -last - 1 : around};
  }
};

/// Some neighbours of a site.
struct Neighbours {
  Spin next_x, previous_x, below, above;
};

/// The sites of one colour in a plane, with what their update reads. Neighbours have the other colour. Positions in the
/// plane are `int`: compilers vectorise loops over numbers that must not overflow.
struct Sheet {
  float* own;            ///< [components, y, half_x]
  const float* others;   ///< the plane's spins of the other colour; those of the planes below and above are beside them
  const float* forward;  ///< [axes, y, half_x]: couplings with the next sites
  const float* theirs;   ///< couplings of the other colour; those of the plane below precede them
  int area;

  BEELINE_HOST_DEVICE Sheet(const Lattice& lattice, unsigned colour, std::uint32_t plane)
      : own(lattice.spins_of(colour) + lattice.offset(plane)),
        others(lattice.spins_of(1 - colour) + lattice.offset(plane)),
        forward(lattice.couplings_of(colour) + lattice.offset(plane)),
        theirs(lattice.couplings_of(1 - colour) + lattice.offset(plane)), area(static_cast<int>(lattice.area())) {}

  /// The couplings' sums with the next sites alone: summed over all sites, minus the energy.
  [[nodiscard]] BEELINE_HOST_DEVICE Spin forward_field(int at, const Distances& to) const {
    return sum(sum(scaled(forward[at], other(at + to.next_x)), scaled(forward[area + at], other(at + to.next_y))),
               scaled(forward[2 * area + at], other_above(at)));
  }

  /// Spins of the other colour.
  [[nodiscard]] BEELINE_HOST_DEVICE Spin other(int at) const { return load_spin(others, area, at); }
  [[nodiscard]] BEELINE_HOST_DEVICE Spin other_below(int at) const { return load_spin(others - plane(), area, at); }
  [[nodiscard]] BEELINE_HOST_DEVICE Spin other_above(int at) const { return load_spin(others + plane(), area, at); }

  /// The local field of the neighbours `along` in the row and in the column. The order of the additions is that of the
  /// serial reference.
  [[nodiscard]] BEELINE_HOST_DEVICE Spin field(int at, const Distances& to, const Neighbours& along) const {
    const int front = at + to.previous_y;
    const Spin along_x = sum(scaled(forward[at], along.next_x), scaled(theirs[at + to.previous_x], along.previous_x));
    const Spin along_y =
        sum(scaled(forward[area + at], other(at + to.next_y)), scaled(theirs[area + front], other(front)));
    const Spin along_z =
        sum(scaled(forward[2 * area + at], along.above), scaled((theirs - plane())[2 * area + at], along.below));
    return sum(sum(along_x, along_y), along_z);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Spin field(int at, const Distances& to) const {
    return field(at, to, {other(at + to.next_x), other(at + to.previous_x), other_below(at), other_above(at)});
  }

  /// Moves position 0 by some sites, and to the next plane.
  BEELINE_HOST_DEVICE void move(int sites) { own += sites, others += sites, forward += sites, theirs += sites; }
  BEELINE_HOST_DEVICE void ascend() { move(plane()); }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE int plane() const { return static_cast<int>(components) * area; }
};

/// Updates one site.
template <class Rule>
BEELINE_HOST_DEVICE void update_site(const Lattice& lattice, unsigned colour, std::uint32_t plane, std::uint32_t row,
                                     std::uint32_t column, const Rule& rule) {
  const Sheet sheet(lattice, colour, plane);
  const int at = static_cast<int>(row * lattice.half_x + column);
  const Distances to = Distances::of(lattice, lattice.shift_of(colour, row, plane), row, column);
  const std::uint64_t site = rule.is_heat_bath ? lattice.site(colour, column, row, plane) : 0;
  store_spin(sheet.own, sheet.area, at, rule(load_spin(sheet.own, sheet.area, at), sheet.field(at, to), site));
}

/// Some rows of a plane.
struct Rows {
  std::uint32_t first, count;
};

/// Updates all sites of one colour in a row. The loop over sites whose neighbours are at the same distances has no
/// branches, so that compilers for CPUs vectorise it.
template <class Rule>
BEELINE_HOST_DEVICE void update_row(const Lattice& lattice, unsigned colour, std::uint32_t plane, std::uint32_t row,
                                    const Rule& rule) {
  const std::uint32_t last = lattice.half_x - 1, shift = lattice.shift_of(colour, row, plane);
  if (rule.is_heat_bath || last == 0) {
    for (std::uint32_t column = 0; column <= last; ++column) update_site(lattice, colour, plane, row, column, rule);
    return;
  }
  update_site(lattice, colour, plane, row, shift == 0 ? 0 : last, rule);  // its neighbour is at the row's other end
  const Sheet sheet(lattice, colour, plane);
  const Distances to = Distances::of(lattice, shift, row, 1 - shift);
  const int begin = static_cast<int>(row * lattice.half_x + 1 - shift), end = begin + static_cast<int>(last);
#pragma GCC ivdep
  for (int at = begin; at < end; ++at)
    store_spin(sheet.own, sheet.area, at, over_relaxed(load_spin(sheet.own, sheet.area, at), sheet.field(at, to)));
}

/// Updates all sites of one colour in some rows of a plane; the threads of `group` share them.
template <class Group, class Rule>
BEELINE_HOST_DEVICE void update_rows(const Group& group, const Lattice& lattice, unsigned colour, std::uint32_t plane,
                                     const Rows& rows, const Rule& rule) {
#if BEELINE_ON_GPU
  for (std::uint32_t i = group.thread_rank(); i < rows.count * lattice.half_x; i += group.size()) {
    const std::uint32_t row = i / lattice.half_x;
    update_site(lattice, colour, plane, rows.first + row, i - row * lattice.half_x, rule);
  }
#else
  for (std::uint32_t row = group.thread_rank(); row < rows.count; row += group.size())
    update_row(lattice, colour, plane, rows.first + row, rule);
#endif
}

/// Some planes of a rank.
struct Planes {
  std::uint32_t first, count, step;
};

/// Updates the sites of one colour in one column of consecutive planes.
template <class Rule>
BEELINE_HOST_DEVICE void update_column(const Lattice& lattice, unsigned colour, const Planes& planes, std::uint32_t row,
                                       std::uint32_t column, const Rule& rule) {
  Sheet sheet(lattice, colour, planes.first);
  sheet.move(static_cast<int>(row * lattice.half_x + column));
  const Distances even = Distances::of(lattice, 0, row, column), odd = Distances::of(lattice, 1, row, column);
  const std::uint32_t shift = lattice.shift_of(colour, row, planes.first);
  Spin below = sheet.other_below(0), here = sheet.other(0);
  for (std::uint32_t i = 0; i < planes.count; ++i, sheet.ascend()) {
    const bool is_odd = ((shift + i) & 1u) != 0;  // also where z begins again, since the number of planes is even
    const Spin spin = load_spin(sheet.own, sheet.area, 0), above = sheet.other_above(0),
               beside = sheet.other(is_odd ? odd.next_x : even.previous_x);
    const Neighbours along{is_odd ? beside : here, is_odd ? here : beside, below, above};
    const std::uint64_t site = rule.is_heat_bath ? lattice.site(colour, column, row, planes.first + i) : 0;
    store_spin(sheet.own, sheet.area, 0, rule(spin, sheet.field(0, is_odd ? odd : even, along), site));
    below = here, here = above;
  }
}

/// As `update_planes` on a GPU, whose blocks have `block_threads`. Blocks take rectangles of the same planes, which
/// share neighbours in the second-level cache.
template <class Grid, class Rule>
BEELINE_HOST_DEVICE void update_tiles(const Grid& grid, const Lattice& lattice, unsigned colour, const Planes& planes,
                                      const Rule& rule) {
  const std::uint32_t across = (lattice.half_x + tile_columns - 1) / tile_columns;
  const std::uint32_t tiles = across * ((lattice.y + tile_rows - 1) / tile_rows);
  // Few tiles are divided among more blocks.
  const std::uint32_t share = planes.step == 1 ? tiles * planes.count / grid.blocks() : 1;
  const std::uint32_t height = share > most_planes_of_tile ? most_planes_of_tile : share > 1 ? share : 1;
  const std::uint32_t thread = grid.block().thread_rank(), layers = (planes.count + height - 1) / height;
  for (std::uint32_t item = grid.block_rank(); item < tiles * layers; item += grid.blocks()) {
    const std::uint32_t layer = item / tiles, tile = item - layer * tiles, down = tile / across;
    const std::uint32_t row = down * tile_rows + thread / tile_columns;
    const std::uint32_t column = (tile - down * across) * tile_columns + thread % tile_columns;
    const std::uint32_t first = layer * height, left = planes.count - first;
    if (row < lattice.y && column < lattice.half_x)
      update_column(lattice, colour, {planes.first + first * planes.step, left < height ? left : height, 1}, row,
                    column, rule);
  }
}

/// Updates all sites of one colour in `planes`; the threads of `grid` share them.
template <class Grid, class Rule>
BEELINE_HOST_DEVICE void update_planes(const Grid& grid, const Lattice& lattice, unsigned colour, const Planes& planes,
                                       const Rule& rule) {
#if BEELINE_ON_GPU
  update_tiles(grid, lattice, colour, planes, rule);
#else
  for (std::uint32_t plane = 0; plane < planes.count; ++plane)
    update_rows(grid, lattice, colour, planes.first + plane * planes.step, {0, lattice.y}, rule);
#endif
}

}  // namespace spin_glass
