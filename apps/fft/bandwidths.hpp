// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bandwidths that bound the transform.

#include "parts.hpp"

namespace fft {

/// Bytes per second.
struct Bandwidths {
  double link = 0;    ///< that each device gets from its partner, while all pairs exchange; 0: one device
  double memory = 0;  ///< read and written by a kernel that copies inside the first device, both counted
};

/// Measures with parts of a vector, whose elements are lost; medians of several copies.
[[nodiscard]] Bandwidths measure_bandwidths(Parts& parts);

/// Seconds that the steps between devices need at least: a part each, at the link's bandwidth.
[[nodiscard]] double exchange_seconds(const Parts& parts, const Bandwidths& bandwidths);
/// Seconds that the bytes of one transform need at least: the steps between devices at the link's bandwidth, the
/// transform of a part at the memory's.
[[nodiscard]] double bound_seconds(const Parts& parts, const Bandwidths& bandwidths);

}  // namespace fft
