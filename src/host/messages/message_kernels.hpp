// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernel of messages.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/message_channel.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Largest number of threads of a block of the kernel on a GPU.
inline constexpr unsigned message_threads = 512;

/// One end of a message.
struct MessageEnd {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint32_t peer = 0;
  std::uint32_t blocks = 0;  ///< blocks that move it; 0: no message
  std::uint32_t tag = 0;
  std::uint32_t elements = 0;  ///< element type, as of `message_elements`
};

/// A grid whose first `sent.blocks` blocks send, and whose others receive.
void launch_messages(Team& team, const LaunchOptions& options, const MessageChannel& channel, const MessageEnd& sent,
                     const MessageEnd& received);

}  // namespace beeline::detail
