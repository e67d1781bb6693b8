// SPDX-License-Identifier: Apache-2.0
#include "host/messages/message_kernels.hpp"

#include "beeline/collectives/messages.hpp"
#include "beeline/host/launch.hpp"

namespace beeline::detail {

namespace {

struct MessageKernel {
  static constexpr unsigned max_threads = 2 * message_threads;  // so that two blocks fit a multiprocessor
  static constexpr bool starts_early = true;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, MessageChannel channel, MessageEnd sent,
                                      MessageEnd received) const {
    const std::uint32_t block = grid.block_rank();
    if (const std::size_t first = std::size_t{8} * grid.thread_rank(); first < sent.bytes)
      machine::prefetch(sent.data + first);  // overlaps with the load of the sender's state
    // The failing operation records the failure.
    if (block < sent.blocks)
      static_cast<void>(send(MessageSession(grid.block(), ctx, channel, block, sent.blocks, sent.tag), sent.data,
                             sent.bytes, sent.peer, {.elements = sent.elements}));
    else
      static_cast<void>(
          receive(MessageSession(grid.block(), ctx, channel, block - sent.blocks, received.blocks, received.tag),
                  received.data, received.bytes, received.peer, {.elements = received.elements}));
  }
};

}  // namespace

void launch_messages(Team& team, const LaunchOptions& options, const MessageChannel& channel, const MessageEnd& sent,
                     const MessageEnd& received) {
  launch(team, options, MessageKernel{}, channel, sent, received);
}

}  // namespace beeline::detail
