// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The session on which one group sends and receives messages in a kernel.

#include "beeline/collectives/impl/message_link.hpp"
#include "beeline/device/grid.hpp"

namespace beeline {

/// Options of one call in a kernel.
struct MessageSessionCall {
  Timeout timeout = Timeout::none();  ///< the call's own limit; after `timeout` the same call continues
  std::uint32_t elements = 0;         ///< type of the elements, as returned by `detail::message_elements`; 0: not
                                      ///< compared
};

inline namespace BEELINE_CALLS {

/// The session on which one group sends and receives the messages of a team, in a kernel:
///
///   MessageSession session(grid.block(), ctx, channel);  // made by one group at sender and receiver
///   MessageSession session(grid, ctx, channel);          // made by a grid at sender and receiver: each block moves a
///                                                        slice
///   if (send(session, source, bytes, peer) != Status::ok) return;
///
/// Every thread of the group makes it, and calls its functions with the same arguments. Sender and receiver of a
/// message use the same number of slices. At most one group of a rank uses a session for one peer and direction at a
/// time.
template <class Group>
class MessageSession {
 public:
  /// Session `index` of the channel, for one group, which moves slice `index` of the `slices` of every message.
  ///   tag  tag of the session's messages, up to `most_message_tag`: the same at sender and receiver
  BEELINE_HOST_DEVICE MessageSession(const Group& group, const Context& ctx, const MessageChannel& channel,
                                     std::uint32_t index = 0, std::uint32_t slices = 1, std::uint32_t tag = 0)
      : group_(group), ctx_(ctx), channel_(channel), index_(index), slices_(slices), tag_(tag) {}
  /// For each block, the session with the block's number. If the grid has more blocks than the channel has sessions,
  /// every call returns invalid_argument. In each block, a call returns the status of the block's slice. Data that
  /// other blocks have received are visible after `grid.sync`, and at the end of the kernel. A block whose call
  /// returned `timeout` makes the call again.
  BEELINE_HOST_DEVICE MessageSession(const Grid<Group>& grid, const Context& ctx, const MessageChannel& channel)
      : MessageSession(grid.block(), ctx, channel, grid.block_rank(), grid.blocks()) {
    exists_ = grid.blocks() <= channel.sessions;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE const Group& group() const { return group_; }
  /// Whether the channel has a session for every block.
  [[nodiscard]] BEELINE_HOST_DEVICE bool exists() const { return exists_; }
  /// Whether a message of this length is sent eagerly; false if the session does not exist.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_eager(std::size_t bytes) const {
    return exists_ && channel_.is_eager(bytes, slices_);
  }
  /// The slice of a message that this session moves.
  ///   elements  element type, as returned by `detail::message_elements`
  template <class Byte>
  [[nodiscard]] BEELINE_HOST_DEVICE detail::MessageSlice<Byte> slice_of(Byte* data, std::size_t bytes,
                                                                        std::uint32_t elements) const {
    const std::uint64_t header = detail::message_header(bytes, slices_, tag_, elements);
    if (slices_ == 1) return {data, bytes, header};
    const detail::Range mine = detail::part_of(bytes, slices_, index_, 16);
    return {data + mine.first, mine.count, header};
  }
  /// The session's link to a peer. Stops the caller at a peer outside the team: see device/access.hpp.
  [[nodiscard]] BEELINE_HOST_DEVICE detail::MessageLink link_to(Operation operation, std::uint32_t peer) const {
    return {ctx_, channel_, detail::checked_peer(ctx_, operation, peer), index_};
  }

 private:
  Group group_;
  const Context& ctx_;
  MessageChannel channel_;
  std::uint32_t index_, slices_, tag_;
  bool exists_ = true;
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
