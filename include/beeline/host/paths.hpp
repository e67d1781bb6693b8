// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptions, in words, of the paths between ranks.

#include <string>

#include "beeline/host/world.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

/// How a rank reaches the memory of another, in words.
struct PathToRank {
  std::string operations;  ///< path of operations of kernels and CPU threads
  std::string copies;      ///< path of copies by the host and on streams
  std::string reason;      ///< why it is this path
};

/// The path from this rank to `rank`. Throws invalid_argument for a bad rank.
[[nodiscard]] PathToRank path_to(World& world, int rank);

/// Statistics of this rank's puts to and gets from other nodes by memory keys.
[[nodiscard]] NetworkStatistics network_statistics(const World& world);

}  // namespace beeline
