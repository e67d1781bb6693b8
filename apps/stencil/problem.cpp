// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace stencil {

namespace {

using beeline::require;
using beeline::Status;

Size parse_size(const std::string& item) {
  constexpr std::size_t largest = std::size_t{32} << 10;
  std::vector<std::size_t> extents;
  std::istringstream parts(item);
  for (std::string part; std::getline(parts, part, 'x');) {
    const std::optional<std::size_t> extent = apps::parse_quantity(part);
    if (!extent || *extent == 0 || *extent > largest) break;
    extents.push_back(*extent);
  }
  const auto crosses = static_cast<std::size_t>(std::ranges::count(item, 'x'));
  require((crosses == 0 || crosses == 2) && extents.size() == crosses + 1, Status::invalid_argument,
          fmt::format("--size: '{}' is no size; valid: N (N x N x N points) or XxYxZ, of 1 to 32K points each", item));
  return crosses == 0 ? Size{extents[0], extents[0], extents[0]} : Size{extents[0], extents[1], extents[2]};
}

}  // namespace

std::vector<Size> parse_sizes(const std::string& text) {
  std::vector<Size> sizes;
  for (const std::string& item : apps::list_items(text)) sizes.push_back(parse_size(item));
  require(!sizes.empty(), Status::invalid_argument, "--size: no volume is named");
  return sizes;
}

Slab slab_of(const Size& size, std::size_t parts, std::size_t part) {
  const std::size_t fewest = size.z / parts, larger = size.z % parts;
  require(fewest >= radius, Status::invalid_argument,
          fmt::format("--size: {} devices for {} planes along z (volume {}x{}x{}): each device needs at least {}",
                      parts, size.z, size.x, size.y, size.z, radius));
  return {part * fewest + std::min(part, larger), fewest + (part < larger ? 1 : 0)};
}

void check(const apps::Devices& devices, const std::vector<Size>& sizes, bool objects, bool verify) {
  constexpr std::size_t fields = 2;            // the volume before and after a step
  constexpr std::size_t staging_buffers = 2;   // of the proxy pattern: a device's boundaries
  constexpr std::size_t reference_fields = 3;  // two of the reference, and the result
  for (const Size& size : sizes) {
    const Slab largest = slab_of(size, devices.size(), 0);
    const std::size_t bytes = fields * (largest.planes + 2 * radius) * size.plane() * sizeof(float);
    apps::require_room(
        devices, {.problem = fmt::format("a volume of {}x{}x{} on {} devices", size.x, size.y, size.z, devices.size()),
                  .device_bytes = bytes,
                  .host_bytes = (staging_buffers * size.halo_bytes() + (objects ? bytes : 0)) * devices.size(),
                  .reference_bytes = verify ? reference_fields * size.stored() * sizeof(float) : 0});
  }
}

}  // namespace stencil
