// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare ping-pongs of one thread: of a flag, and of 8 bytes with a flag behind them.

#include <memory>
#include <string>

#include "harness/measurement.hpp"
#include "harness/message_buffers.hpp"

namespace beeline::bench {

enum class BareOrder {
  relaxed,  ///< relaxed store, relaxed poll
  acquire,  ///< relaxed store, acquire poll
  memory    ///< release store, acquire poll
};

/// Collective. One thread of each rank, over a symmetric word of its own, as the bare peer of method `peer_of`.
[[nodiscard]] Measurement bare_flag(Bench& bench, BareOrder order, std::string operation, std::string peer_of);

/// Collective. One thread of each rank; `buffers` hold messages of 8 bytes. The bare peer of `device/peer/signal`.
[[nodiscard]] Measurement bare_put_signal(Bench& bench, std::shared_ptr<MessageBuffers> buffers);

}  // namespace beeline::bench
