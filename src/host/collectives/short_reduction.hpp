// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduces of short vectors, and barriers on streams, over several nodes: each member sends its vector to the first
/// of its node, which combines them in the order of ranks, exchanges the sum with the first of each other node,
/// combines the nodes' sums in their order, and sends the result to the members of its node.

#include <cstddef>

#include "host/collectives/node_reduction.hpp"

namespace beeline::detail {

/// Bytes of partial results up to which this is faster than `reduce_across`.
inline constexpr std::size_t short_bytes = 8192;

/// Whether a call takes this path; every member makes the same choice.
[[nodiscard]] bool is_short(const PairLinks& links, const NodeReduction& reduction);

/// One member's part. Returns as `reduce_across`.
[[nodiscard]] Status reduce_short(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction);

}  // namespace beeline::detail
