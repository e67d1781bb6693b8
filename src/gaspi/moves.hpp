// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Transfers between a local segment and a segment of a rank: checked first, then begun by what carries them.

#include <cstdint>
#include <memory>
#include <vector>

#include "gaspi/queues.hpp"

namespace beeline::gaspi {

/// A transfer as the caller names it.
struct Named {
  gaspi_segment_id_t segment_local;
  gaspi_offset_t offset_local;
  gaspi_segment_id_t segment_remote;
  gaspi_offset_t offset_remote;
  gaspi_size_t size;
};

/// A transfer whose arguments were checked.
struct Move {
  std::byte* local;  ///< start of the local end
  Part remote;
  std::uint64_t offset;  ///< start of the remote end, in bytes from the part's start
  std::uint64_t bytes;
  bool is_on_device;  ///< one end is GPU memory: the queue's stream carries the transfer
};

/// The signal of a notification.
struct Flag {
  std::uint64_t* signal;  ///< symmetric address
  bool is_on_device;      ///< in GPU memory, where only streams and kernels set it
};

[[noreturn]] void refuse_part(const Part& part, gaspi_segment_id_t segment, int rank);
[[noreturn]] void refuse_move(const Process& process, const Named& named, int rank);

/// The part of `rank`, if it is registered with this rank; refuses others.
[[nodiscard]] inline Part require_part(const Process& process, gaspi_segment_id_t segment, int rank) {
  const Part part = process.segments().part(segment, rank);
  if (part.kind == Memory::none || !part.is_for_me) [[unlikely]]
    refuse_part(part, segment, rank);
  return part;
}
/// This rank's part.
[[nodiscard]] inline Part require_own_part(const Process& process, gaspi_segment_id_t segment) {
  return require_part(process, segment, process.rank());
}
/// Refuses a transfer that is not valid.
///   rank  of the world
[[nodiscard]] inline Move require_move(const Process& process, const Named& named, int rank) {
  const Part local = require_own_part(process, named.segment_local);
  const Part remote = require_part(process, named.segment_remote, rank);
  if (named.size == 0 || named.size > configuration().transfer_size_max ||
      !is_within(named.offset_local, named.size, local.bytes) ||
      !is_within(named.offset_remote, named.size, remote.bytes)) [[unlikely]]
    refuse_move(process, named, rank);
  return {local.address + named.offset_local, remote, named.offset_remote, named.size,
          local.kind == Memory::device || remote.kind == Memory::device};
}
/// The signal of a notification of a part; refuses a notification that is not valid.
[[nodiscard]] inline Flag require_flag(const Part& part, gaspi_notification_id_t notification,
                                       gaspi_notification_t value) {
  require_notifications(notification, 1);
  if (value == 0) [[unlikely]]
    refuse(GASPI_ERR_INV_NOTIF_VAL, "a notification has a value other than 0");
  return {part.flags + notification, part.has_flags_on_device};
}

/// Keeps the memory of the two segments of a transfer mapped.
class UseOfBoth {
 public:
  UseOfBoth(std::uint32_t first, std::uint32_t second)
      : first_(first), second_(first == second ? segment_ids : second) {}

 private:
  const SegmentTable::Use first_, second_;
};

/// Begins the transfers and notifications of one call, for a rank in a queue, and notes them in the queue at its end.
/// Each function returns false if the time-out passed before all of it was begun. The same call then begins everything
/// once more: no rank can tell that data were written twice before their notification.
class Post {
 public:
  ///   entries  of the queue, that the call takes
  Post(const Process& process, Queue& queue, int rank, std::uint32_t entries, std::uint64_t timeout_ms)
      : process_(process), queue_(queue), rank_(rank), entries_(entries), timeout_ms_(timeout_ms) {}
  ~Post() {
    if (has_begun_) queue_.note(rank_, static_cast<Carrier>(carriers_), entries_);
  }
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  ///   hybrid  what moves bytes of GPU memory on the queue's stream; nullptr: plain copies
  [[nodiscard]] bool write(const Move& move, beeline_hybrid* hybrid = nullptr);
  [[nodiscard]] bool read(const Move& move);
  /// Whether `read` would block until another node answers, longer than the call's time-out.
  [[nodiscard]] bool may_block(const Move& move) const {
    return timeout_ms_ != block_ms && !move.is_on_device && move.remote.data != nullptr &&
           queues().carrier_to(rank_) == Carrier::engine;
  }
  /// Reads from another node; not longer than the time-out, after which the same call continues.
  ///   uses  what keeps the segments' memory mapped
  [[nodiscard]] bool read_in_time(const std::vector<Move>& moves, const std::shared_ptr<const void>& uses);
  /// Sets a notification of the rank after everything that the queue was given for it.
  [[nodiscard]] bool notify(const Flag& flag, gaspi_notification_t value);
  /// `write`, and a notification of the rank after it.
  [[nodiscard]] bool write_notify(const Move& move, const Flag& flag, gaspi_notification_t value,
                                  beeline_hybrid* hybrid = nullptr);
  /// Sets a notification of this rank after the reads of this call.
  [[nodiscard]] bool notify_self(const Flag& flag, gaspi_notification_t value);

 private:
  /// Calls `attempt()`, which returns a beeline_status, until it has begun the request. If an engine carries it, waits
  /// for room before.
  template <class Attempt>
  [[nodiscard]] bool begin(Carrier carrier, const Attempt& attempt);
  /// Before the first request that an engine carries: room for all of the call.
  [[nodiscard]] beeline_status reserve(std::uint64_t slice_ns);
  /// Waits until what the engine has carried for the queue is at its targets.
  [[nodiscard]] bool await_arrival();
  [[nodiscard]] bool set(const Flag& flag, gaspi_notification_t value, int rank);
  [[nodiscard]] bool uses_stream() const { return (carriers_ & static_cast<std::uint32_t>(Carrier::stream)) != 0; }

  const Process& process_;
  Queue& queue_;
  const int rank_;
  const std::uint32_t entries_;
  const std::uint64_t timeout_ms_;
  std::uint32_t carriers_ = 0;  ///< bits of Carrier
  bool has_begun_ = false;
  bool has_room_ = false;  ///< in the engine's ring
};

}  // namespace beeline::gaspi
