// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The update of one site, and its random numbers. All devices round every operation in the same way: sums,
/// products, quotients and square roots of IEEE 754, without contraction, and no functions of a mathematical library.

#include <cstdint>

#include "beeline/core/macros.hpp"
#include "problem.hpp"

namespace spin_glass {

struct Spin {
  float x, y, z;
};

[[nodiscard]] BEELINE_HOST_DEVICE inline float dot(const Spin& a, const Spin& b) {
  return (a.x * b.x + a.y * b.y) + a.z * b.z;
}
[[nodiscard]] BEELINE_HOST_DEVICE inline Spin scaled(float factor, const Spin& s) {
  return {factor * s.x, factor * s.y, factor * s.z};
}
[[nodiscard]] BEELINE_HOST_DEVICE inline Spin sum(const Spin& a, const Spin& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
[[nodiscard]] BEELINE_HOST_DEVICE inline float square_root(float value) { return __builtin_sqrtf(value); }

/// Word `counter` of the random numbers of `key` (splitmix64).
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t bits = key * 0x9e3779b97f4a7c15u + (counter + 1) * 0xd1b54a32d192ed03u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}
/// A number in (-1, 1) from 24 bits.
[[nodiscard]] BEELINE_HOST_DEVICE inline float signed_fraction(std::uint64_t bits) {
  return static_cast<float>(static_cast<int>(bits & 0xffffffu) * 2 + 1 - (1 << 24)) / static_cast<float>(1 << 24);
}

/// A point in the unit circle, and the square of its distance from the centre. Source: Marsaglia 1972.
struct InCircle {
  float u, v, square;
};
[[nodiscard]] BEELINE_HOST_DEVICE inline InCircle point_in_circle(std::uint64_t key) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t bits = random_bits(key, attempt);
    const float u = signed_fraction(bits), v = signed_fraction(bits >> 32), square = u * u + v * v;
    if (square < 1 && square > 0) return {u, v, square};
  }
}

/// The spin of a site before the first sweep: uniform on the unit sphere.
[[nodiscard]] BEELINE_HOST_DEVICE inline Spin initial_spin(std::uint64_t site) {
  const InCircle p = point_in_circle(4 * site);
  const float factor = 2 * square_root(1 - p.square);
  return {factor * p.u, factor * p.v, 1 - 2 * p.square};
}

/// The coupling of a site with the next site along `axis` (0: x, 1: y, 2: z). Gaussian: the sum of twelve uniform
/// numbers, which has variance 1 and ends at 6.
[[nodiscard]] BEELINE_HOST_DEVICE inline float coupling(Couplings kind, std::uint64_t site, std::uint32_t axis) {
  const std::uint64_t key = 4 * site + 1 + axis;
  if (kind == Couplings::plus_minus) return (random_bits(key, 0) >> 40 & 1u) != 0 ? 1.0f : -1.0f;
  int sum = -6 * 65535;
  for (std::uint64_t word = 0; word < 3; ++word) {
    const std::uint64_t bits = random_bits(key, word);
    for (unsigned part = 0; part < 64; part += 16) sum += static_cast<int>(bits >> part & 0xffffu);
  }
  return static_cast<float>(sum) / 65536;
}

/// Over-relaxation: reflects a spin at the local field; energy and length stay. A spin without a field stays.
[[nodiscard]] BEELINE_HOST_DEVICE inline Spin over_relaxed(const Spin& spin, const Spin& field) {
  const float square = dot(field, field);
  const float factor = 2 * dot(spin, field) / square;
  // A choice between values, not a branch: loops over sites stay free of branches.
  const bool moves = square > 0;
  return {moves ? factor * field.x - spin.x : spin.x, moves ? factor * field.y - spin.y : spin.y,
          moves ? factor * field.z - spin.z : spin.z};
}

namespace detail {

/// exp(-value) for value >= 0, by halving and a Taylor polynomial; relative error below 1e-12.
[[nodiscard]] BEELINE_HOST_DEVICE inline double negative_exponential(double value) {
  if (value > 700) return 0;
  int halvings = 0;
  for (; value > 0.125; ++halvings) value /= 2;
  double sum = 1;
  BEELINE_NO_UNROLL
  for (int n = 9; n > 0; --n) sum = 1 - sum * value / n;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

/// log(value) for 0 < value <= 1, by doubling and the series of the inverse hyperbolic tangent.
[[nodiscard]] BEELINE_HOST_DEVICE inline double logarithm(double value) {
  constexpr double of_two = 0.693147180559945309417;
  int doublings = 0;
  for (; value < 0.70710678; ++doublings) value *= 2;
  const double t = (value - 1) / (value + 1), square = t * t;
  double sum = 0;
  BEELINE_NO_UNROLL
  for (int n = 21; n > 0; n -= 2) sum = sum * square + 1.0 / n;
  return 2 * t * sum - doublings * of_two;
}

}  // namespace detail

/// Heat bath: a new spin whose angle with the local field has the distribution of thermal equilibrium with the
/// neighbours.
///   key  of the random numbers: of this site in this sweep
[[nodiscard]] BEELINE_HOST_DEVICE inline Spin heat_bath(const Spin& spin, const Spin& field, double temperature,
                                                        std::uint64_t key) {
  const float strength = square_root(dot(field, field));
  if (!(strength > 0)) return spin;
  const double a = static_cast<double>(strength) / temperature;
  const double uniform = (static_cast<double>(random_bits(key, 0) >> 12) + 1) / 4503599627370496.0;  // (0, 1]
  const double cosine = a < 1e-6
                            ? 2 * uniform - 1
                            : 1 + detail::logarithm(uniform + (1 - uniform) * detail::negative_exponential(2 * a)) / a;
  const float z = static_cast<float>(cosine < -1 ? -1.0 : cosine), r = square_root(z < 1 && z > -1 ? 1 - z * z : 0.0f);
  const Spin along = scaled(1 / strength, field);
  // A vector across the field: the field times the axis that is farthest from it.
  const bool takes_x = along.x * along.x < 0.5f;
  const Spin across = takes_x ? Spin{0, along.z, -along.y} : Spin{-along.z, 0, along.x};
  const Spin first = scaled(1 / square_root(dot(across, across)), across);
  const Spin second{along.y * first.z - along.z * first.y, along.z * first.x - along.x * first.z,
                    along.x * first.y - along.y * first.x};
  const InCircle p = point_in_circle(key + 1);
  const float factor = r / square_root(p.square);
  return sum(scaled(z, along), sum(scaled(factor * p.u, first), scaled(factor * p.v, second)));
}

/// The rule of a sweep that is no heat bath. Kernels that have it alone need half the registers.
struct OverRelaxation {
  static constexpr bool is_heat_bath = false;

  [[nodiscard]] BEELINE_HOST_DEVICE Spin operator()(const Spin& spin, const Spin& field, std::uint64_t) const {
    return over_relaxed(spin, field);
  }
};

/// The rule of any sweep.
struct Rule {
  bool is_heat_bath;
  std::uint32_t sweep;  ///< its number, from 1 on
  double temperature;

  [[nodiscard]] BEELINE_HOST_DEVICE Spin operator()(const Spin& spin, const Spin& field, std::uint64_t site) const {
    if (!is_heat_bath) return over_relaxed(spin, field);
    return heat_bath(spin, field, temperature, 2 * (random_bits(site, sweep) >> 1));
  }
};
[[nodiscard]] BEELINE_HOST_DEVICE inline Rule rule_of(const Model& model, std::uint32_t sweep) {
  return {model.heat_bath != 0 && sweep % model.heat_bath == 0, sweep, model.temperature};
}

}  // namespace spin_glass
