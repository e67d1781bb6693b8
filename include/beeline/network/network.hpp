// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether worlds on this machine may span several nodes (docs/network.md).

#include <string>

namespace beeline {

/// Why this build or machine cannot connect ranks on several nodes, and what to install; empty if it can. Opens UCX.
[[nodiscard]] std::string no_network_reason();

}  // namespace beeline
