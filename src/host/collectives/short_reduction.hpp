// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduces of short vectors, and barriers on streams, over several nodes. Each member sends its vector to the first
/// member of its node. This member combines the vectors in the order of ranks, exchanges the sum with the first member
/// of each other node, combines the nodes' sums in the order of nodes, and sends the result to its node's members.

#include <cstddef>

#include "host/collectives/node_reduction.hpp"

namespace beeline::detail {

/// Bytes of partial results up to which this is faster than `reduce_across`.
inline constexpr std::size_t short_bytes = 8192;

/// Whether a call takes this path; every member makes the same choice.
[[nodiscard]] bool is_short(const PairLinks& links, const NodeReduction& reduction);

/// One member's part of the reduction. Returns as `reduce_across`.
[[nodiscard]] Status reduce_short(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction);

}  // namespace beeline::detail
