// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages in kernels: send and receive, by one group or by a grid. How they travel is said in message_sender.hpp.
///
/// Between two members messages are matched in the order in which they are sent and received, without tags, as NCCL's.
/// A message is received as it is sent: in as many bytes, and by a grid of as many blocks.

#include "beeline/collectives/message_receiver.hpp"
#include "beeline/collectives/message_sender.hpp"
#include "beeline/device/grid.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// Sends `bytes` from `source` to `peer`, as `MessageSender::send`, on lane 0. Loops keep a `MessageSender` instead.
///   source  any local address, reusable when every thread has returned with ok
/// Every thread of `group` calls it. Source: MPI 4.0, 3.2, MPI_Send.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status send(const Group& group, const Context& ctx, const MessageChannel& channel,
                                              const void* source, std::size_t bytes, std::uint32_t peer,
                                              Timeout timeout = Timeout::none()) {
  return MessageSender<Group>(group, ctx, channel, peer).send(source, bytes, timeout);
}

/// Receives the next message of `peer`, of `bytes`, into `destination`, as `MessageReceiver::receive`, on lane 0.
/// Every thread of `group` calls it. Source: MPI 4.0, 3.2, MPI_Recv.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status receive(const Group& group, const Context& ctx, const MessageChannel& channel,
                                                 void* destination, std::size_t bytes, std::uint32_t peer,
                                                 Timeout timeout = Timeout::none()) {
  return MessageReceiver<Group>(group, ctx, channel, peer).receive(destination, bytes, timeout);
}

/// As above by a whole grid: each block sends a slice, on the lane of its number, to the same block of the receiving
/// grid. Returns each block the status of its slice, and invalid_argument for more blocks than the channel has lanes.
/// After `timeout`, the blocks call again that got it.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status send(const Grid<BlockGroup>& grid, const Context& ctx,
                                              const MessageChannel& channel, const void* source, std::size_t bytes,
                                              std::uint32_t peer, Timeout timeout = Timeout::none()) {
  if (grid.blocks() > channel.lanes) return Status::invalid_argument;
  return MessageSender<BlockGroup>(grid.block(), ctx, channel, peer, grid.block_rank())
      .send_part(source, bytes, grid.blocks(), timeout);
}

/// As above; what other blocks have received is visible after `grid.sync`.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE Status receive(const Grid<BlockGroup>& grid, const Context& ctx,
                                                 const MessageChannel& channel, void* destination, std::size_t bytes,
                                                 std::uint32_t peer, Timeout timeout = Timeout::none()) {
  if (grid.blocks() > channel.lanes) return Status::invalid_argument;
  return MessageReceiver<BlockGroup>(grid.block(), ctx, channel, peer, grid.block_rank())
      .receive_part(destination, bytes, grid.blocks(), timeout);
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
