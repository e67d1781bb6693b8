// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reductions over several nodes. Members of a node read and write each other's vectors, or copies of them in memory
/// that they share. For each block of elements one member of every node is the *leader*. The leader combines the
/// vectors of its node's members in the order of ranks, and sends this sum to the other leaders, or to the member that
/// gets the result. Each receiver combines the nodes' sums in the order of nodes, so all results are equal bit by bit,
/// and writes the result to the destinations of its node's members. By `two_shot_across_nodes` only one leader receives
/// the sums of a block, on each node in turn, and sends the result to the other leaders that need it.
///
///     all members of a node      open: exchange the offsets of their vectors
///     the leader of a block     gather: combine them, send the sum to the other nodes
///                                finish: combine the nodes' sums, write the result (some blocks later: so the network
///                                is never idle)
///                                receive, in two shots: write the result of another node's leader (later again)
///     all members of a node      close: wait until the others have finished their blocks

#include <cstddef>

#include "beeline/collectives/operation.hpp"
#include "host/collectives/wide_reducer.hpp"
#include "host/node_map.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// An all-reduce, a reduce or a reduce-scatter.
struct NodeReduction {
  CallDescription call;  ///< compared with the other members'
  Reduction reduction;
  std::byte* destination;
  const std::byte* source;
  const WideReducer* reducer;
  std::size_t element_bytes;
  std::size_t count;     ///< of the vector, or of each piece
  bool may_share_heaps;  ///< CPU threads of a node read and write each other's symmetric heaps
};

/// One member's part of the reduction. Returns ok; deadline, aborted or invalid_argument, recorded.
[[nodiscard]] Status reduce_across(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction);

}  // namespace beeline::detail
