// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Transfers between a local segment and a segment of a rank: checked first, then begun by what carries them.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/impl/prefetch_machine.hpp"
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

/// The signal of a notification.
struct Flag {
  std::uint64_t* signal;  ///< symmetric address
  bool is_on_device;      ///< in GPU memory, where only streams and kernels set it
};

[[noreturn, gnu::cold]] void refuse_part(Memory kind, gaspi_segment_id_t segment, int rank);
[[noreturn, gnu::cold]] void refuse_move(const Process& process, const Named& named, int rank);

/// The part of `rank`, if it is registered with this rank; refuses others.
[[nodiscard]] inline Part require_part(const Process& process, gaspi_segment_id_t segment, int rank) {
  const Part part = process.segments().part(segment, rank);
  if (part.kind == Memory::none || !part.is_for_me) [[unlikely]]
    refuse_part(part.kind, segment, rank);
  return part;
}
/// This rank's part.
[[nodiscard]] inline Part require_own_part(const Process& process, gaspi_segment_id_t segment) {
  return require_part(process, segment, process.rank());
}

/// A transfer whose arguments were checked.
class Move {
 public:
  /// Refuses a transfer that is not valid.
  ///   rank  of the world
  Move(const Process& process, const Named& named, int rank)
      : Move(require_own_part(process, named.segment_local), process, named, rank) {}
  /// For a caller that has checked.
  Move(std::byte* from, const Part& to, std::uint64_t at, std::uint64_t count, bool on_device)
      : remote(to), local(from), offset(at), bytes(count), is_on_device(on_device) {}

  Part remote;
  std::byte* local;      ///< start of the local end
  std::uint64_t offset;  ///< start of the remote end, in bytes from the part's start
  std::uint64_t bytes;
  bool is_on_device;  ///< one end is GPU memory: the queue's stream carries the transfer

 private:
  Move(const Part& own, const Process& process, const Named& named, int rank)
      : remote(require_part(process, named.segment_remote, rank)), local(own.address + named.offset_local),
        offset(named.offset_remote), bytes(named.size),
        is_on_device(own.kind == Memory::device || remote.kind == Memory::device) {
    if (named.size == 0 || named.size > configuration().transfer_size_max ||
        !is_within(named.offset_local, named.size, own.bytes) ||
        !is_within(named.offset_remote, named.size, remote.bytes)) [[unlikely]]
      refuse_move(process, named, rank);
  }
};
/// The signal of a notification of a part; refuses a notification that is not valid.
[[nodiscard]] inline Flag require_flag(const Part& part, gaspi_notification_id_t notification,
                                       gaspi_notification_t value) {
  require_notifications(notification, 1);
  if (value == 0) [[unlikely]]
    refuse(GASPI_ERR_INV_NOTIF_VAL, "a notification has a value other than 0");
  return {part.flags + notification, part.has_flags_on_device};
}

/// Begins to fetch the cache line of a flag from the core that polls it. This thread stores the flag soon: without the
/// line, that store and those after it would wait.
inline void fetch_for_store(const Part& part, const Flag& flag) {
  if (!part.is_direct || part.data == nullptr) return;
  const auto mapped = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
  detail::prefetch_for_store(mapped(flag.signal) + (mapped(part.address) - mapped(part.data)));  // both in one slot
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
                                  beeline_hybrid* hybrid = nullptr) {
    if (move.is_on_device || flag.is_on_device || move.remote.data == nullptr) [[unlikely]]
      return write_notify_slowly(move, flag, value, hybrid);
    return begin(queues().carrier_to(rank_), [&] {
      return beeline_put_signal(process_.world_team(), move.remote.data + move.offset, move.local, move.bytes,
                                flag.signal, value, rank_, queue_.number());
    });
  }
  /// Sets a notification of this rank after the reads of this call.
  [[nodiscard]] bool notify_self(const Flag& flag, gaspi_notification_t value);

 private:
  /// Calls `attempt()`, which returns a beeline_status, until it has begun the request. If an engine carries it, waits
  /// for room before.
  template <class Attempt>
  [[nodiscard]] bool begin(Carrier carrier, const Attempt& attempt) {
    if (carrier == Carrier::nothing) [[likely]]
      return note(carrier, wait_for(process_, awaited(), timeout_ms_, [&](std::uint64_t) { return attempt(); }));
    return note(carrier, wait_for(process_, awaited(), timeout_ms_, [&](std::uint64_t slice_ns) {
                  const beeline_status status = reserve(carrier, slice_ns);
                  return status == BEELINE_OK ? attempt() : status;
                }));
  }
  [[nodiscard]] Awaited awaited() const {
    return {.what = "the engine to take a request for rank",
            .number = static_cast<std::uint64_t>(rank_),
            .needed = {&rank_, 1}};
  }
  /// Notes that a request has begun, unless its time-out has passed. Returns whether it has begun.
  [[nodiscard]] bool note(Carrier carrier, Result begun) {
    if (begun != Result::success) [[unlikely]]
      return false;
    carriers_ |= static_cast<std::uint32_t>(carrier);
    has_begun_ = true;
    return true;
  }
  /// Before the first request that an engine carries: room for all of the call.
  [[nodiscard]] beeline_status reserve(Carrier carrier, std::uint64_t slice_ns);
  /// Waits until what the engine has carried for the queue is at its targets.
  [[nodiscard]] bool await_arrival();
  /// `write_notify` where a stream carries a part of it, or the target has its memory from before.
  [[nodiscard]] bool write_notify_slowly(const Move& move, const Flag& flag, gaspi_notification_t value,
                                         beeline_hybrid* hybrid);
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
