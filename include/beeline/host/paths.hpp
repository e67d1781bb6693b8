// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which paths ranks take to each other, for people.

#include <string>

#include "beeline/host/world.hpp"

namespace beeline {

/// How a rank reaches the memory of another, in words.
struct PathToRank {
  std::string operations;  ///< those of kernels and CPU threads
  std::string copies;      ///< those by the host and on streams
  std::string reason;      ///< why it is this path
};

/// Of this rank to another. Throws invalid_argument for a bad rank.
[[nodiscard]] PathToRank path_to(World& world, int rank);

}  // namespace beeline
