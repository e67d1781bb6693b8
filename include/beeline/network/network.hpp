// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether worlds may span nodes here (docs/network.md).

#include <string>

namespace beeline {

/// Why this build or machine has no network for ranks on several nodes, with what to install; empty: it has one. Opens
/// UCX.
[[nodiscard]] std::string no_network_reason();

}  // namespace beeline
