// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bound that memory sets: how fast the ranks' devices copy, measured in the same run as the methods.

#include <cstddef>
#include <optional>

#include "beeline/host/world.hpp"
#include "problem.hpp"

namespace himeno {

/// Bytes that an iteration moves for each point at least: every array once, 13 read, one written.
inline constexpr double bytes_per_point = (coefficient_arrays + 2) * sizeof(float);

/// Symmetric heap that the measurement needs of each rank. Host ranks touch a part of it only.
inline constexpr std::size_t copy_heap_bytes = (std::size_t{1} << 30) + (std::size_t{1} << 20);

/// Collective. Bytes a second, read and written, of a plain copy of a large buffer inside each rank's memory, by all
/// ranks at once: the sum over ranks. On a GPU by the driver's device-to-device copy, on a host rank by memcpy. None
/// where host ranks have several threads each, since one thread copies.
[[nodiscard]] std::optional<double> copy_bandwidth(beeline::World& world);

/// Share of the bound that a method reaches: its points times `bytes_per_point`, against the copy bandwidth.
[[nodiscard]] std::optional<double> bound_share(const Size& size, double iterations_per_second,
                                                const std::optional<double>& bandwidth);

}  // namespace himeno
