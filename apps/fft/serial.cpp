// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <future>
#include <numbers>

#include "problem.hpp"

namespace fft {

namespace {

using Values = std::complex<double>*;

/// Transforms `count` elements of the vector, `stride` apart, the first at `first`, into `out`, by the transforms of
/// its even and its odd elements.
void transform(Values out, std::size_t count, std::size_t first, std::size_t stride, int threads) {
  if (count == 1) {
    const Complex element = initial_element(first);
    *out = {element.re, element.im};
    return;
  }
  const std::size_t half = count / 2;
  if (threads > 1) {
    const auto even =
        std::async(std::launch::async, [=] { transform(out, half, first, 2 * stride, threads - threads / 2); });
    transform(out + half, half, first + stride, 2 * stride, threads / 2);
  } else {
    transform(out, half, first, 2 * stride, 1);
    transform(out + half, half, first + stride, 2 * stride, 1);
  }
  const double angle = -2 * std::numbers::pi / static_cast<double>(count);
  for (std::size_t k = 0; k < half; ++k) {
    const std::complex<double> even = out[k], odd = std::polar(1.0, angle * static_cast<double>(k)) * out[k + half];
    out[k] = even + odd;
    out[k + half] = even - odd;
  }
}

}  // namespace

std::vector<std::complex<double>> serial_transform(std::size_t count, int threads) {
  std::vector<std::complex<double>> values(count);
  transform(values.data(), count, 0, 1, threads);
  return values;
}

}  // namespace fft
