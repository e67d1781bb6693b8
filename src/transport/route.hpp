// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How one rank reaches memory of another, as decided once.

#include <cstdint>
#include <string_view>

namespace beeline {

enum class RouteKind : std::uint8_t {
  direct,  ///< by loads and stores, or by copies of the rank's own device
  copy,    ///< only by copies of another device
  engine,  ///< by commands to the rank's engine
  refused
};

/// The route of one operation.
struct Route {
  RouteKind kind = RouteKind::direct;
  int device = -1;  ///< `copy`: CUDA index in this process of the device that copies; in a world without GPUs a rank
  std::string_view reason{};  ///< why the route is not direct; lives as long as the world

  [[nodiscard]] bool is_direct() const { return kind == RouteKind::direct; }
};

}  // namespace beeline
