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

/// Calls by which an engine reports failures to its world and asks it about them. Called by the engine's thread.
struct FailureEvents {
  /// Returns the members of a team on other nodes that this rank notifies of an abort.
  std::function<std::vector<int>(std::uint32_t team)> members_to_notify;
  /// Returns why a team of this rank was aborted.
  std::function<std::string(std::uint32_t team)> cause;
  /// Reports that a team was aborted on another node.
  std::function<void(std::uint32_t team, std::uint64_t word, const std::string& cause)> aborted;
  /// Returns whether this rank's kernels see that the world was aborted. Only then they may get answers that have no
  /// value: after an answer they read their abort word. Does not block; called again until it returns true.
  std::function<bool()> kernels_see_abort;
  /// Handles a lost connection to a rank, for which no reason was reported.
  std::function<void(int peer, const std::string& reason)> lost;
};

class RemoteExchange;

/// Collective. Connects this rank with the ranks of other nodes by the transports of the plan. Each pair of ranks uses
/// the first transport in the lower rank's list that both ranks have.
/// Throws unavailable if a rank has no transport of its list (the message says what to install), unreachable or
/// deadline if a rank does not reach another, invalid_argument if two ranks speak different protocols.
[[nodiscard]] std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, NetworkPlan plan, FailureEvents events);
/// The engine of a rank that has received the greetings of all its peers.
[[nodiscard]] std::unique_ptr<Engine> make_network_engine(std::unique_ptr<RemoteExchange> exchange,
                                                          FailureEvents events);

}  // namespace beeline
