// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bound set by memory bandwidth: how fast the ranks' devices copy, measured in the same run as the methods.

#include <cstddef>
#include <optional>

#include "beeline/host/world.hpp"
#include "problem.hpp"

namespace himeno {

/// Smallest number of bytes that an iteration moves for each point: 13 arrays are read once, one is written once.
inline constexpr double bytes_per_point = (coefficient_arrays + 2) * sizeof(float);

/// Bytes of symmetric heap that the measurement needs on each rank. Host ranks touch only a part of it.
inline constexpr std::size_t copy_heap_bytes = (std::size_t{1} << 30) + (std::size_t{1} << 20);

/// Collective. Bytes per second, read and written, of a plain copy of a large buffer inside each rank's memory, with
/// all ranks copying at once; summed over ranks. A GPU uses the driver's device-to-device copy, a host rank memcpy.
/// None if host ranks have several threads each, since only one thread would copy.
[[nodiscard]] std::optional<double> copy_bandwidth(beeline::World& world);

/// Share of the bound that a method reaches: its points per second times `bytes_per_point`, over the copy bandwidth.
[[nodiscard]] std::optional<double> bound_share(const Size& size, double iterations_per_second,
                                                const std::optional<double>& bandwidth);

}  // namespace himeno
