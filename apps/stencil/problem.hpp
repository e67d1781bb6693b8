// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a volume of points, each of which changes by the curvature of its surroundings, and the devices' shares
/// of planes.

#include <cstddef>
#include <string>
#include <vector>

#include "common/devices.hpp"
#include "common/initial_value.hpp"

namespace stencil {

/// Points on each side of a point, along each axis, on which its next value depends.
inline constexpr std::size_t radius = 4;

/// Interior points of the whole volume. Around them lies a boundary, four points wide, that never changes.
struct Size {
  std::size_t x, y, z;
  /// Points that a step updates.
  [[nodiscard]] std::size_t points() const { return x * y * z; }
  /// Stored points of a row, boundary included.
  [[nodiscard]] std::size_t width() const { return x + 2 * radius; }
  /// Stored points of a plane along z, boundary included.
  [[nodiscard]] std::size_t plane() const { return width() * (y + 2 * radius); }
  /// Stored points of the volume, boundary included.
  [[nodiscard]] std::size_t stored() const { return plane() * (z + 2 * radius); }
  /// Bytes of a halo: the planes of a neighbour that a device needs.
  [[nodiscard]] std::size_t halo_bytes() const { return radius * plane() * sizeof(float); }
  friend bool operator==(const Size&, const Size&) = default;
};

/// Parses volumes separated by commas: `N` (N x N x N points) or `XxYxZ`. Numbers are 1 to 32K, with or without K
/// (1024). Throws invalid_argument, which quotes the wrong item.
[[nodiscard]] std::vector<Size> parse_sizes(const std::string& text);

/// The interior planes of one device.
struct Slab {
  std::size_t first;   ///< number of its first plane among the interior planes
  std::size_t planes;  ///< at least `radius`
};

/// The slab of device `part` of `parts`: contiguous; sizes of slabs differ by at most one plane. Throws
/// invalid_argument when a slab would have fewer planes than a halo.
[[nodiscard]] Slab slab_of(const Size& size, std::size_t parts, std::size_t part);

/// The value of a stored point before the first step: neighbouring values differ, so that each step changes all points.
///   plane  stored plane along z, boundary included
///   index  of the point in its plane
BEELINE_HOST_DEVICE inline float initial_value(std::size_t plane, std::size_t index) {
  return apps::initial_value(0, static_cast<std::uint32_t>(plane), index);
}

/// Checks, before anything is allocated, that every device has enough planes and memory for the volumes, which are
/// measured one after the other; throws as `slab_of` and `apps::require_room` do.
///   objects  the host also holds the objects' copies
///   verify   the host also holds the serial reference
void check(const apps::Devices& devices, const std::vector<Size>& sizes, bool objects, bool verify);

}  // namespace stencil
