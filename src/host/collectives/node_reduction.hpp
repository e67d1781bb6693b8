// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reductions over several nodes. For each block of elements one member of every node is the *speaker*. It combines the
/// vectors of its node's members in the order of ranks, and sends this sum to the other speakers, or to the member that
/// gets the result. Each receiver combines the nodes' sums in the order of nodes, so all get the same bits. In an
/// all-reduce the speaker then sends the result to its node's members.
///
///     first half of a block      member -> its speaker          speaker -> the other nodes' speakers
///     second half                speaker: result -> member      (a block later: so the network is never idle)

#include <cstddef>

#include "beeline/collectives/operation.hpp"
#include "host/collectives/node_map.hpp"
#include "host/collectives/wide_reducer.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// An all-reduce, a reduce or a reduce-scatter.
struct NodeReduction {
  CallDescription call;
  std::byte* destination;
  const std::byte* source;
  const WideReducer* reducer;
  std::size_t count;  ///< of the vector, or of each piece
};

/// One member's part. Returns ok; deadline, aborted or invalid_argument, recorded.
[[nodiscard]] Status reduce_across(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction);

}  // namespace beeline::detail
