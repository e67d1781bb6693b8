// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Moving data between members on several nodes. What several members of a node get goes to one of them, who hands it
/// on to the others while it comes.

#include "beeline/collectives/impl/movement_plan.hpp"
#include "host/collectives/node_map.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// One member's part. Returns ok; deadline, aborted or invalid_argument, recorded.
[[nodiscard]] Status move_across(const PairLinks& links, const NodeMap& nodes, const MovementPlan& plan);

}  // namespace beeline::detail
