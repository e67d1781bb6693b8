// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The share of the memory's bandwidth that a method reaches.

#include <optional>

#include "problem.hpp"

namespace himeno {

/// Smallest number of bytes that an iteration moves for each point: 13 arrays are read once, one is written once.
inline constexpr double bytes_per_point = (coefficient_arrays + 2) * sizeof(float);

/// Share of the bound that a method reaches: its points per second times `bytes_per_point`, over the copy bandwidth.
[[nodiscard]] std::optional<double> bound_share(const Size& size, double iterations_per_second,
                                                const std::optional<double>& bandwidth);

}  // namespace himeno
