// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare ping-pongs of one thread: with a flag, and with 8 bytes followed by a flag.

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

/// Collective. Ping-pong between one thread of each rank, over its own symmetric word: the bare peer of method
/// `peer_of`.
[[nodiscard]] Measurement bare_flag(Bench& bench, BareOrder order, std::string operation, std::string peer_of);

/// Collective. Ping-pong between one thread of each rank, with messages of 8 bytes in `buffers`: the bare peer of
/// `device/peer/signal`.
[[nodiscard]] Measurement bare_put_signal(Bench& bench, std::shared_ptr<MessageBuffers> buffers);

}  // namespace beeline::bench
