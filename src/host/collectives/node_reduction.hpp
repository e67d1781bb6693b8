// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reductions over several nodes. Of each block of elements one member of every node, its speaker, combines what the
/// members of its node have, in the order of ranks. Speakers tell each other, or the one who gets the result; who gets
/// it combines what nodes have in their order, so that all have the same bits. Of an all-reduce, speakers tell their
/// nodes.
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
