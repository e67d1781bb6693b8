// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engine of peers on other nodes (docs/network.md).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"
#include "beeline/transport/engine.hpp"
#include "memory/memory_users.hpp"
#include "transports/network_plan.hpp"

namespace beeline {

/// What an engine reports to its world, and asks it, about failures. Called by the engine's thread.
struct FailureEvents {
  /// Members of a team on other nodes that this rank notifies of an abort.
  std::function<std::vector<int>(std::uint32_t team)> members_to_notify;
  /// Why a team of this rank was aborted.
  std::function<std::string(std::uint32_t team)> cause;
  /// A team was aborted on another node.
  std::function<void(std::uint32_t team, std::uint64_t word, const std::string& cause)> aborted;
  /// Handles a lost connection to a rank, for which no reason was reported.
  std::function<void(int peer, const std::string& reason)> lost;
};

class RemoteExchange;

/// Collective. Connects this rank with those of other nodes, by the transports of the plan: each pair of ranks by the
/// first one of the lower rank's list that both have.
/// Throws unavailable where a rank has none of its list (names it, and says what to install), unreachable or deadline
/// where a rank does not reach another, invalid_argument where they speak different protocols.
[[nodiscard]] std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, NetworkPlan plan, FailureEvents events);
/// The engine of a rank whose peers have greeted.
[[nodiscard]] std::unique_ptr<Engine> make_network_engine(std::unique_ptr<RemoteExchange> exchange,
                                                          FailureEvents events);

}  // namespace beeline
