// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The addition of chunks, which every scheme uses.

#include <cstddef>

#include "beeline/core/macros.hpp"
#include "beeline/device/impl/machine.hpp"
#include "schedule.hpp"

namespace ring_reduction {

/// to[i] = a[i] + b[i]; the sum is also stored to `also_to` unless that is nullptr. All begin at multiples of `grain`
/// elements; `to` may be `a` or `b`, and may lie on another rank.
struct Sum {
  const float *a, *b;
  float *to, *also_to;
  std::size_t count;
};

namespace detail {

struct alignas(grain * sizeof(float)) Grain {
  float values[grain];
};

BEELINE_HOST_DEVICE inline Grain load_grain(const float* from, std::size_t index) {
  return beeline::machine::load_as<Grain>(reinterpret_cast<const std::byte*>(from) + index * sizeof(Grain));
}
BEELINE_HOST_DEVICE inline void store_grain(float* to, std::size_t index, const Grain& value) {
  beeline::machine::store_as(reinterpret_cast<std::byte*>(to) + index * sizeof(Grain), value);
}

/// Adds `many` grains that are `stride` apart: all loads come before the first store, so that they overlap.
template <unsigned many>
BEELINE_HOST_DEVICE void sum_grains(const Sum& sum, std::size_t first, std::size_t stride) {
  Grain a[many], b[many];
  for (unsigned k = 0; k < many; ++k) a[k] = load_grain(sum.a, first + k * stride);
  for (unsigned k = 0; k < many; ++k) b[k] = load_grain(sum.b, first + k * stride);
  for (unsigned k = 0; k < many; ++k) {
    for (std::size_t i = 0; i < grain; ++i) a[k].values[i] += b[k].values[i];
    store_grain(sum.to, first + k * stride, a[k]);
    if (sum.also_to != nullptr) store_grain(sum.also_to, first + k * stride, a[k]);
  }
}

BEELINE_HOST_DEVICE inline void sum_element(const Sum& sum, std::size_t i) {
  const float value = sum.a[i] + sum.b[i];
  sum.to[i] = value;
  if (sum.also_to != nullptr) sum.also_to[i] = value;
}

}  // namespace detail

/// The share of a block of `blocks` in `count` elements; all begin at multiples of `grain`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Range share_of(std::size_t count, unsigned block, unsigned blocks) {
  const std::size_t share = (count + blocks * grain - 1) / (blocks * grain) * grain;
  const std::size_t first = share * block < count ? share * block : count;
  return {first, share < count - first ? share : count - first};
}

/// Adds with `threads` threads, of which the caller is number `thread`. Does not order memory.
BEELINE_HOST_DEVICE inline void store_sum(std::size_t thread, std::size_t threads, const Sum& sum) {
#if BEELINE_ON_GPU
  constexpr unsigned many = 4;
  const std::size_t grains = sum.count / grain;
  std::size_t i = thread;
  BEELINE_NO_UNROLL
  for (; i + (many - 1) * threads < grains; i += many * threads) detail::sum_grains<many>(sum, i, threads);
  BEELINE_NO_UNROLL
  for (; i < grains; i += threads) detail::sum_grains<1>(sum, i, threads);
  BEELINE_NO_UNROLL
  for (i = grains * grain + thread; i < sum.count; i += threads) detail::sum_element(sum, i);
#else
  // A CPU thread takes one contiguous share of whole cache lines.
  constexpr std::size_t line = 64 / sizeof(float);
  const std::size_t share = ((sum.count + threads - 1) / threads + line - 1) / line * line;
  const std::size_t first = share * thread < sum.count ? share * thread : sum.count;
  const std::size_t last = first + share < sum.count ? first + share : sum.count;
  for (std::size_t i = first; i < last; ++i) detail::sum_element(sum, i);
#endif
}

}  // namespace ring_reduction
