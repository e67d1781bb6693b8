// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The least that a put with a signal is: a store of 8 bytes, a releasing store of a flag, polls that acquire.

#include <memory>

#include "harness/measurement.hpp"
#include "harness/message_buffers.hpp"

namespace beeline::bench {

/// Collective. One thread of each rank; `buffers` hold messages of 8 bytes. The bare peer of `device/peer/signal`.
[[nodiscard]] Measurement bare_put_signal(Bench& bench, std::shared_ptr<MessageBuffers> buffers);

}  // namespace beeline::bench
