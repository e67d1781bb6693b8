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

/// A rank's planes. Each colour has an array of its own, whose rows hold every second site along x. A plane of a colour
/// is contiguous, so that one message carries it. Plane 0 and plane `planes` + 1 are halos.
struct Lattice {
  std::uint32_t half_x, y, planes;  ///< sites of a colour in a row; rows of a plane; own planes
  std::uint32_t first_z, size_z;    ///< z of plane 1; planes of the whole lattice
  float* spins[colours];            ///< [planes + 2, components, y, half_x]
  float* couplings[colours];        ///< [planes + 1, axes, y, half_x] with the next site along each axis

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

/// The sites of one colour in a plane, with what their update reads. Neighbours have the other colour. Positions in the
/// plane are `int`: compilers vectorise loops over numbers that must not overflow.
struct Sheet {
  float* own;            ///< [components, y, half_x]
  const float* others;   ///< the plane's spins of the other colour; those of the planes below and above are beside them
  const float* forward;  ///< [axes, y, half_x]: couplings with the next sites
  const float* theirs;   ///< couplings of the other colour; those of the plane below precede them
  int area;

  BEELINE_HOST_DEVICE Sheet(const Lattice& lattice, unsigned colour, std::uint32_t plane)
      : own(lattice.spins[colour] + lattice.offset(plane)), others(lattice.spins[1 - colour] + lattice.offset(plane)),
        forward(lattice.couplings[colour] + lattice.offset(plane)),
        theirs(lattice.couplings[1 - colour] + lattice.offset(plane)), area(static_cast<int>(lattice.area())) {}

  /// The couplings' sums with the next sites alone: summed over all sites, minus the energy.
  [[nodiscard]] BEELINE_HOST_DEVICE Spin forward_field(int at, const Distances& to) const {
    return sum(sum(scaled(forward[at], load_spin(others, area, at + to.next_x)),
                   scaled(forward[area + at], load_spin(others, area, at + to.next_y))),
               scaled(forward[2 * area + at], load_spin(others + plane(), area, at)));
  }

  /// The local field. The order of the additions is that of the serial reference.
  [[nodiscard]] BEELINE_HOST_DEVICE Spin field(int at, const Distances& to) const {
    const int left = at + to.previous_x, front = at + to.previous_y;
    const Spin along_x = sum(scaled(forward[at], load_spin(others, area, at + to.next_x)),
                             scaled(theirs[left], load_spin(others, area, left)));
    const Spin along_y = sum(scaled(forward[area + at], load_spin(others, area, at + to.next_y)),
                             scaled(theirs[area + front], load_spin(others, area, front)));
    const Spin along_z = sum(scaled(forward[2 * area + at], load_spin(others + plane(), area, at)),
                             scaled((theirs - plane())[2 * area + at], load_spin(others - plane(), area, at)));
    return sum(sum(along_x, along_y), along_z);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE int plane() const { return static_cast<int>(components) * area; }
};

/// Updates one site.
BEELINE_HOST_DEVICE inline void update_site(const Lattice& lattice, unsigned colour, std::uint32_t plane,
                                            std::uint32_t row, std::uint32_t column, const Rule& rule) {
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
BEELINE_HOST_DEVICE inline void update_row(const Lattice& lattice, unsigned colour, std::uint32_t plane,
                                           std::uint32_t row, const Rule& rule) {
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
template <class Group>
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

/// Updates all sites of one colour in `planes`; the threads of `grid` share them. On a GPU a block has `block_threads`.
template <class Grid>
BEELINE_HOST_DEVICE void update_planes(const Grid& grid, const Lattice& lattice, unsigned colour, const Planes& planes,
                                       const Rule& rule) {
#if BEELINE_ON_GPU
  const std::uint32_t across = (lattice.half_x + tile_columns - 1) / tile_columns;
  const std::uint32_t tiles = across * ((lattice.y + tile_rows - 1) / tile_rows);
  const std::uint32_t thread = grid.block().thread_rank();
  for (std::uint32_t item = grid.block_rank(); item < tiles * planes.count; item += grid.blocks()) {
    const std::uint32_t plane = item / tiles, tile = item - plane * tiles, down = tile / across;
    const std::uint32_t row = down * tile_rows + thread / tile_columns;
    const std::uint32_t column = (tile - down * across) * tile_columns + thread % tile_columns;
    if (row < lattice.y && column < lattice.half_x)
      update_site(lattice, colour, planes.first + plane * planes.step, row, column, rule);
  }
#else
  for (std::uint32_t plane = 0; plane < planes.count; ++plane)
    update_rows(grid, lattice, colour, planes.first + plane * planes.step, {0, lattice.y}, rule);
#endif
}

}  // namespace spin_glass
