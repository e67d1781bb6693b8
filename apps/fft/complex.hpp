// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Complex numbers, as cuFFT stores them, and roots of unity.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "beeline/core/macros.hpp"

namespace fft {

/// A complex number in single precision.
struct alignas(8) Complex {
  float re, im;
};

BEELINE_HOST_DEVICE inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
BEELINE_HOST_DEVICE inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
BEELINE_HOST_DEVICE inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// e^(-2 pi i * index / 2^log_length) to within the precision of float32. The angle is a fraction of 2^32 first, so
/// that long vectors lose no bits of `index`.
///   index       below 2^log_length
///   log_length  1 to 32
BEELINE_HOST_DEVICE inline Complex root_of_unity(std::size_t index, unsigned log_length) {
  const auto fraction = static_cast<std::int32_t>(static_cast<std::uint32_t>(index << (32 - log_length)));
#ifdef __CUDA_ARCH__
  float sine, cosine;
  sincospif(static_cast<float>(fraction) * 0x1p-31f, &sine, &cosine);
  return {cosine, -sine};
#else
  const double angle = static_cast<double>(fraction) * 0x1p-31 * std::numbers::pi;
  return {static_cast<float>(std::cos(angle)), static_cast<float>(-std::sin(angle))};
#endif
}

}  // namespace fft
