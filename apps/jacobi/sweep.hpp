// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The computation: one Jacobi update of any piece of a slab, shared by every method. It consists of additions and a
/// product with a power of two: a compiler can contract nothing, so a point has the same bits everywhere.

#include "fields.hpp"

namespace jacobi {

namespace detail {

struct alignas(quad_points * sizeof(float)) Quad {
  float point[quad_points];
};

BEELINE_HOST_DEVICE inline Quad load_quad(const float* from) { return *reinterpret_cast<const Quad*>(from); }

BEELINE_HOST_DEVICE inline float relaxed(float above, float below, float left, float right) {
  return 0.25f * ((above + below) + (left + right));
}

/// A position in a column of quads: the quad that is updated next and the quad above it, both with their old values.
struct Column {
  int first;  ///< column of its first point
  Quad above, here;
};

/// Updates `many` rows of a quad from `at` on. All loads come before the first store, so that they overlap.
template <int many>
BEELINE_HOST_DEVICE void update_rows(const Fields& f, const float* from, float* to, std::ptrdiff_t at, Column& column) {
  // Beyond a row's ends lie other rows, whose halos may not have arrived; no interior point needs them.
  const bool has_left = column.first > 0, has_right = column.first + quad_points < f.row;
  Quad below[many];
  float left[many], right[many];
  for (int k = 0; k < many; ++k) {
    const float* here = from + at + k * f.row;
    below[k] = load_quad(here + f.row);
    left[k] = has_left ? here[-1] : 0;
    right[k] = has_right ? here[quad_points] : 0;
  }
  for (int k = 0; k < many; ++k) {
    const Quad here = column.here;
    Quad updated = here;
    for (int i = 0; i < quad_points; ++i)
      if (column.first + i >= 1 && column.first + i <= f.columns)
        updated.point[i] = relaxed(column.above.point[i], below[k].point[i], i == 0 ? left[k] : here.point[i - 1],
                                   i == quad_points - 1 ? right[k] : here.point[i + 1]);
    *reinterpret_cast<Quad*>(to + at + k * f.row) = updated;
    column.above = here;
    column.here = below[k];
  }
}

/// Updates one quad in rows [first, last), downwards: each row is loaded once.
BEELINE_HOST_DEVICE inline void update_quad(const Fields& f, const float* from, float* to, int quad, int first,
                                            int last) {
  constexpr int many = 4;
  std::ptrdiff_t at = first * f.row + quad * quad_points;
  Column column{quad * quad_points, load_quad(from + at - f.row), load_quad(from + at)};
  int row = first;
  BEELINE_NO_UNROLL
  for (; row + many <= last; row += many, at += many * f.row) update_rows<many>(f, from, to, at, column);
  BEELINE_NO_UNROLL
  for (; row < last; ++row, at += f.row) update_rows<1>(f, from, to, at, column);
}

/// Updates columns [first, last) of a row.
BEELINE_HOST_DEVICE inline void update_columns(const Fields& f, const float* from, float* to, int row, int first,
                                               int last) {
  const float* here = from + row * f.row;
  float* updated = to + row * f.row;
  for (int i = first; i < last; ++i) updated[i] = relaxed(here[i - f.row], here[i + f.row], here[i - 1], here[i + 1]);
}

/// The beginning of share `index` of `count` equal shares of [first, last).
BEELINE_HOST_DEVICE inline int begin_of_share(int first, int last, unsigned index, unsigned count) {
  return first + static_cast<int>(std::int64_t{last - first} * index / count);
}

}  // namespace detail

/// Computes `piece` of the field after `iteration` with `threads` threads, of which the caller is number `thread`.
BEELINE_HOST_DEVICE inline void update(unsigned thread, unsigned threads, const Fields& f, const Piece& piece,
                                       std::uint64_t iteration) {
  const float* from = f.before(iteration);
  float* to = f.before(iteration + 1);
#if BEELINE_ON_GPU
  // Neighbouring threads take neighbouring quads. Several rows per thread save loads, as long as enough threads have
  // work.
  const auto rows = static_cast<unsigned>(piece.last_row - piece.first_row);
  const auto quads = static_cast<unsigned>(piece.last_quad - piece.first_quad);
  const auto items_of = [=](unsigned shift) { return ((rows + (1u << shift) - 1) >> shift) * quads; };
  unsigned shift = 3;
  while (shift > 0 && 2 * items_of(shift) < threads) --shift;
  for (unsigned item = thread; item < items_of(shift); item += threads) {
    const unsigned chunk = item / quads, quad = item - chunk * quads;
    const int first = piece.first_row + static_cast<int>(chunk << shift), last = first + (1 << shift);
    detail::update_quad(f, from, to, piece.first_quad + static_cast<int>(quad), first,
                        last < piece.last_row ? last : piece.last_row);
  }
#else
  // A CPU thread takes whole rows, or, if there are fewer rows than threads, a part of a row.
  const bool whole = static_cast<unsigned>(piece.last_row - piece.first_row) >= threads;
  const auto share = [&](bool shared, int first, int last, unsigned index) {
    return shared ? detail::begin_of_share(first, last, index, threads) : index == thread ? first : last;
  };
  const int left = piece.first_quad == 0 ? 1 : piece.first_quad * quad_points;
  const int end = piece.last_quad * quad_points, right = end <= f.columns ? end : f.columns + 1;
  const int first = share(!whole, left, right, thread), last = share(!whole, left, right, thread + 1);
  const int last_row = share(whole, piece.first_row, piece.last_row, thread + 1);
  for (int row = share(whole, piece.first_row, piece.last_row, thread); row < last_row; ++row)
    detail::update_columns(f, from, to, row, first, last);
#endif
}

}  // namespace jacobi
