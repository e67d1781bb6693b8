// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives of teams with members on several nodes. Each piece crosses to another node once: what a node has in
/// common is combined there first, or handed on there.

#include <memory>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/host/launch_options.hpp"
#include "host/collectives/movement_kernels.hpp"
#include "host/node_map.hpp"
#include "host/pairs/cpu_lane.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// Made by all members of a team. Threads of host ranks do it, and a CPU thread beside a GPU.
class AcrossNodes {
 public:
  /// Collective.
  explicit AcrossNodes(Team& team);

  void move(const LaunchOptions& options, const MovementPlan& plan);
  /// `move` with the lengths and positions in `pieces`.
  void move(const LaunchOptions& options, const MovementPlan& plan, const PieceSpans& pieces);
  void reduce(const LaunchOptions& options, const VectorCall& call);
  /// A barrier, or a call of no elements. What each member did before, puts included, is over and visible behind it.
  void meet(const LaunchOptions& options, const CallDescription& call);

 private:
  /// Does `kernel` in the order of a stream.
  ///   placed  the kernel's arguments with vectors that lie at these places
  template <class Kernel, class Placed>
  void start(const LaunchOptions& options, Kernel kernel, const LaneVectors& vectors, Placed placed);

  Team& team_;
  const NodeMap nodes_;      ///< the kernels of calls use it where it lies
  const bool shares_heaps_;  ///< CPU threads of a node reach each other's
  PairMemory memory_;
  std::unique_ptr<CpuLane> lane_;  ///< of a GPU rank
};

}  // namespace beeline::detail
