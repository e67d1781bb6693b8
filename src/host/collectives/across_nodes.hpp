// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives of teams with members on several nodes. Each piece crosses to another node once: the sending node
/// combines its members' contributions first, and the receiving node forwards the piece to its members.

#include <memory>
#include <span>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/host/launch_options.hpp"
#include "host/collectives/movement_kernels.hpp"
#include "host/node_map.hpp"
#include "host/pairs/cpu_lane.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// Made by all members of a team. CPU threads carry out the calls: threads of a host rank, one thread of a GPU rank.
class AcrossNodes {
 public:
  /// Collective.
  AcrossNodes(Team& team, unsigned sessions);

  /// [sessions] The channels of kernels; see `kernels_share_links`.
  [[nodiscard]] std::span<const PairChannel> kernel_channels() const { return memory_.channels().last(sessions_); }

  [[nodiscard]] std::uint32_t nodes() const { return nodes_.nodes(); }

  void move(const LaunchOptions& options, const MovementPlan& plan);
  /// `move` with the lengths and positions in `pieces`.
  void move(const LaunchOptions& options, const MovementPlan& plan, const PieceSpans& pieces);
  void reduce(const LaunchOptions& options, const VectorCall& call);
  /// A barrier, or a call of no elements. Everything that members did before, puts included, is complete and visible
  /// after it.
  void meet(const LaunchOptions& options, const CallDescription& call);

 private:
  [[nodiscard]] Stream& stream_of(const LaunchOptions& options) const;
  /// Runs `kernel` in the order of a stream.
  ///   placed  returns the kernel's arguments for given addresses of the vectors
  template <class Kernel, class Placed>
  void start(const LaunchOptions& options, Kernel kernel, const LaneVectors& vectors, Placed placed);

  Team& team_;
  const unsigned sessions_;
  const NodeMap nodes_;      ///< the kernels of calls refer to this object
  const bool shares_heaps_;  ///< CPU threads of a node reach each other's heaps
  PairMemory memory_;
  std::unique_ptr<CpuLane> lane_;  ///< of a GPU rank
};

}  // namespace beeline::detail
