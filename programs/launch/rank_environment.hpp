// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The variables by which a process finds its world.

#include <string>

#include "options.hpp"
#include "process.hpp"

namespace beeline::launcher {

/// Where the ranks of a world meet. Empty when they are threads.
struct Meeting {
  std::string address;  ///< of the rendezvous server, host:port
  std::string token;    ///< that ranks show there
};

/// The variables to set for the process of a rank, without those for torch.
[[nodiscard]] Environment rank_environment(const Options& options, const Meeting& meeting, int rank);

}  // namespace beeline::launcher
