// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The node of a rank: ranks of one node share memory, ranks of different nodes use the network.

#include <string>

#include "beeline/core/config.hpp"

namespace beeline::detail {

/// Equal on ranks of one node, and only there. Contains the id of the machine's last start, the network namespace
/// (memory is shared over Unix sockets, which do not cross it), and the part of the machine if `Config::split_nodes`
/// makes several nodes of it.
[[nodiscard]] std::string node_of(const Config& config);
/// The host of a node: equal on all parts of one machine and network namespace, which share its loop-back device.
[[nodiscard]] std::string host_of(const std::string& node);
/// The machine of a node: equal on ranks that share its cores, whether or not they share memory.
[[nodiscard]] std::string machine_of(const std::string& node);

}  // namespace beeline::detail
