// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which node a rank is on: ranks of a node share memory, others meet over the network.

#include <string>

#include "beeline/core/config.hpp"

namespace beeline::detail {

/// Equal on ranks of one node, and only there: the machine since its start, the network namespace (Unix sockets, by
/// which memory is shared, do not leave it), and the part of it where `Config::split_nodes` makes several of one.
[[nodiscard]] std::string node_of(const Config& config);
/// The host of a node: equal on the parts of a machine and network namespace, whose loop-back device they share.
[[nodiscard]] std::string host_of(const std::string& node);
/// The machine of a node: equal on ranks that share its cores, whether they share memory or not.
[[nodiscard]] std::string machine_of(const std::string& node);

}  // namespace beeline::detail
