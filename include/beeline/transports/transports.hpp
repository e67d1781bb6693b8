// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The transports between nodes (docs/network.md).

#include <string>
#include <vector>

namespace beeline {

/// A transport, as this build and machine have it.
struct TransportInfo {
  std::string name;
  std::string reason;          ///< why it is not there, and what to install; empty: it is
  bool device_memory = false;  ///< whether it can read and write GPU memory itself
  std::string settings;        ///< those of BEELINE_TRANSPORTS, with their meaning
};

/// All transports, in the order of preference. Opens their libraries.
[[nodiscard]] std::vector<TransportInfo> transports();

/// Why this build or machine cannot connect ranks on several nodes, and what to install; empty if it can. Opens the
/// libraries of the transports.
///   list  as `Config::transports`
[[nodiscard]] std::string no_network_reason(const std::string& list = {});

}  // namespace beeline
