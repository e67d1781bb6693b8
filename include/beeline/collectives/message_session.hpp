// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What one group needs to send and receive messages in a kernel: a session, as collectives have.

#include "beeline/collectives/impl/message_link.hpp"
#include "beeline/device/grid.hpp"

namespace beeline {

/// How one call is to be made in a kernel.
struct MessageSessionCall {
  Timeout timeout = Timeout::none();  ///< the call's own limit; after `timeout` the same call continues
};

inline namespace BEELINE_CALLS {

/// One group's part in the messages of a team, in a kernel:
///
///   MessageSession session(grid.block(), ctx, channel);  // by one group of each end
///   MessageSession session(grid, ctx, channel);          // by a grid of each end: each block moves a slice
///   if (send(session, source, bytes, peer) != Status::ok) return;
///
/// Every thread of the group makes it and calls its functions alike. Both ends of a message have it in as many slices.
/// Towards one peer and in one direction at most one group of a rank uses a session at a time.
template <class Group>
class MessageSession {
 public:
  /// The channel's session `index` by one group, which moves slice `index` of `slices` of every message.
  BEELINE_HOST_DEVICE MessageSession(const Group& group, const Context& ctx, const MessageChannel& channel,
                                     std::uint32_t index = 0, std::uint32_t slices = 1)
      : group_(group), ctx_(ctx), channel_(channel), index_(index), slices_(slices) {}
  /// The session of each block's number. With more blocks than the channel has sessions, every call returns
  /// invalid_argument. A call returns each block the status of its slice; what others of the grid have received is
  /// visible after `grid.sync`, and at the kernel's end. After `timeout`, the blocks that got it call again.
  BEELINE_HOST_DEVICE MessageSession(const Grid<Group>& grid, const Context& ctx, const MessageChannel& channel)
      : MessageSession(grid.block(), ctx, channel, grid.block_rank(), grid.blocks()) {
    exists_ = grid.blocks() <= channel.sessions;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE const Group& group() const { return group_; }
  /// Whether the channel has a session for every block.
  [[nodiscard]] BEELINE_HOST_DEVICE bool exists() const { return exists_; }
  /// Whether a message is sent without asking the receiver; none is where the session does not exist.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_eager(std::size_t bytes) const {
    return exists_ && channel_.is_eager(bytes, slices_);
  }
  /// What this session moves of a message.
  template <class Byte>
  [[nodiscard]] BEELINE_HOST_DEVICE detail::MessageSlice<Byte> slice_of(Byte* data, std::size_t bytes) const {
    const std::uint64_t header = detail::message_header(bytes, slices_);
    if (slices_ == 1) return {data, bytes, header};
    const detail::Range mine = detail::part_of(bytes, slices_, index_, 16);
    return {data + mine.first, mine.count, header};
  }
  /// The session's link to a peer. A peer outside the team: see device/access.hpp.
  [[nodiscard]] BEELINE_HOST_DEVICE detail::MessageLink link_to(Operation operation, std::uint32_t peer) const {
    return {ctx_, channel_, detail::checked_peer(ctx_, operation, peer), index_};
  }

 private:
  Group group_;
  const Context& ctx_;
  MessageChannel channel_;
  std::uint32_t index_, slices_;
  bool exists_ = true;
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
