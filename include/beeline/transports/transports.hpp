// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The transports between nodes (docs/network.md).

#include <string>
#include <vector>

namespace beeline {

/// A transport, and its availability in this build and on this machine.
struct TransportInfo {
  std::string name;
  std::string reason;          ///< why the transport is not available, and what to install; empty if it is available
  bool device_memory = false;  ///< whether it can read and write GPU memory itself
  std::string settings;        ///< the transport's settings in BEELINE_TRANSPORTS, with their meaning
};

/// All transports, in the order of preference. Opens their libraries.
[[nodiscard]] std::vector<TransportInfo> transports();

/// Why this build or machine cannot connect ranks on several nodes, and what to install; empty if it can. Opens the
/// libraries of the transports.
///   list    as `Config::transports`
///   secure  as `Config::secure`; also says why nothing can be encrypted
[[nodiscard]] std::string no_network_reason(const std::string& list = {}, bool secure = false);

}  // namespace beeline
