// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a recursive transform in double precision, without code shared with the methods.

#include <complex>
#include <cstddef>
#include <vector>

namespace fft {

/// The transform of the initial elements of a vector of `count` elements, in the order of frequencies:
///   X(k) = sum over j of x(j) e^(-2 pi i j k / count)
///   threads  speed it up; the values do not depend on their number, bit for bit
[[nodiscard]] std::vector<std::complex<double>> serial_transform(std::size_t count, int threads);

}  // namespace fft
