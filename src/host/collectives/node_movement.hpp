// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Moving data between members on several nodes. Data for several members of a node goes to one of them, which forwards
/// it to the others chunk by chunk.

#include "beeline/collectives/impl/movement_plan.hpp"
#include "host/node_map.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// One member's part of the movement. Returns ok; deadline, aborted or invalid_argument, recorded.
[[nodiscard]] Status move_across(const PairLinks& links, const NodeMap& nodes, const MovementPlan& plan);

}  // namespace beeline::detail
