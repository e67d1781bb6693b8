// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bound set by memory bandwidth: how fast the ranks' devices copy, measured in the same run as the methods.

#include <cstddef>
#include <optional>

#include "beeline/host/world.hpp"

namespace apps {

/// Bytes of symmetric heap that the measurement needs on each rank. Host ranks touch only a part of it.
inline constexpr std::size_t copy_heap_bytes = (std::size_t{1} << 30) + (std::size_t{1} << 20);

/// Collective. Bytes per second, read and written, of a plain copy of a large buffer inside each rank's memory, with
/// all ranks copying at once; summed over ranks. A GPU uses the driver's device-to-device copy, a host rank memcpy.
/// None if host ranks have several threads each, since only one thread would copy.
[[nodiscard]] std::optional<double> copy_bandwidth(beeline::World& world);

}  // namespace apps
