// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare flag ping-pong: store to the peer's word, poll the own one, and nothing else.

#include <string>

#include "harness/measurement.hpp"

namespace beeline::bench {

enum class BareOrder {
  relaxed,  ///< relaxed store, relaxed poll
  acquire,  ///< relaxed store, acquire poll
  memory    ///< release store, acquire poll
};

/// Collective. One thread of each rank, over a symmetric word of its own, as the bare peer of method `peer_of`.
[[nodiscard]] Measurement bare_flag(Bench& bench, BareOrder order, std::string operation, std::string peer_of);

}  // namespace beeline::bench
