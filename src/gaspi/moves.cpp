// SPDX-License-Identifier: Apache-2.0
#include "gaspi/moves.hpp"

#include <bit>

#include "gaspi/timed_operations.hpp"

namespace beeline::gaspi {

namespace {

/// Up to this number of bytes of GPU memory the hybrid method has one chunk, and so nothing that it would overlap.
constexpr std::uint64_t most_unstaged_bytes = std::uint64_t{128} << 10;

}  // namespace

void refuse_part(Memory kind, gaspi_segment_id_t segment, int rank) {
  if (kind == Memory::none) refuse(GASPI_ERR_INV_SEG, fmt::format("rank {} has no segment {}", rank, segment));
  refuse(GASPI_ERR_INV_SEG, fmt::format("segment {} of rank {} is not registered with this rank", segment, rank));
}

void refuse_move(const Process& process, const Named& named, int rank) {
  if (named.size == 0 || named.size > configuration().transfer_size_max)
    refuse(GASPI_ERR_INV_COMMSIZE,
           fmt::format("{} bytes, where 1 to {} are possible", named.size, configuration().transfer_size_max));
  const Part local = require_own_part(process, named.segment_local);
  if (!is_within(named.offset_local, named.size, local.bytes))
    refuse(GASPI_ERR_INV_LOC_OFF, fmt::format("{} bytes from offset {} on, in the local segment {} of {} bytes",
                                              named.size, named.offset_local, named.segment_local, local.bytes));
  refuse(GASPI_ERR_INV_REM_OFF, fmt::format("{} bytes from offset {} on, in segment {} of rank {}, which has {} bytes",
                                            named.size, named.offset_remote, named.segment_remote, rank,
                                            require_part(process, named.segment_remote, rank).bytes));
}

beeline_status Post::reserve(Carrier carrier, std::uint64_t slice_ns) {
  if (carrier != Carrier::engine || has_room_) return BEELINE_OK;
  const beeline_status status =
      queue_.reserve(process_, entries_, timeout_ms_ == block_ms ? BEELINE_NO_TIMEOUT : slice_ns);
  has_room_ = status == BEELINE_OK;
  return status;
}

bool Post::await_arrival() {
  const Awaited awaited{.what = "the arrival of earlier requests at rank",
                        .number = static_cast<std::uint64_t>(rank_),
                        .needed = {&rank_, 1}};
  return wait_for(process_, awaited, timeout_ms_, [&](std::uint64_t slice_ns) {
           return beeline_quiet_within(process_.world_team(), queue_.number(), slice_ns);
         }) == Result::success;
}

bool Post::write(const Move& move, beeline_hybrid* hybrid) {
  beeline_team* const team = process_.world_team();
  if (move.is_on_device && move.remote.is_direct && move.remote.address != nullptr) {
    beeline_stream* const stream = queue_.stream(process_);
    std::byte* const mapped = move.remote.address + move.offset;
    return begin(Carrier::stream, [&] {
      return hybrid != nullptr ? beeline_hybrid_copy_on_stream(hybrid, mapped, move.local, move.bytes, stream)
                               : beeline_copy_on_stream(stream, mapped, move.local, move.bytes);
    });
  }
  if (move.remote.data == nullptr)
    return begin(Carrier::nothing, [&] {
      return beeline_copy_to_registered(move.remote.registered, rank_, move.remote.registered_offset + move.offset,
                                        move.local, move.bytes);
    });
  std::byte* const target = move.remote.data + move.offset;
  if (!move.is_on_device) [[likely]]
    return begin(queues().carrier_to(rank_),
                 [&] { return beeline_put(team, target, move.local, move.bytes, rank_, queue_.number()); });
  beeline_stream* const stream = queue_.stream(process_);
  return begin(Carrier::stream, [&] {
    return hybrid != nullptr ? beeline_hybrid_put_on_stream(hybrid, target, move.local, move.bytes, rank_, stream)
                             : beeline_put_on_stream(team, target, move.local, move.bytes, rank_, stream);
  });
}

bool Post::read(const Move& move) {
  if (!move.is_on_device && move.remote.data != nullptr) [[likely]] {
    const auto get = [&] {
      return beeline_get(process_.world_team(), move.local, move.remote.data + move.offset, move.bytes, rank_);
    };
    if (queues().carrier_to(rank_) == Carrier::nothing) [[likely]]
      return begin(Carrier::nothing, get);
    return begin(Carrier::nothing, [&] { return process_.ask(rank_, get); });
  }
  if (move.remote.address == nullptr) {
    const auto copy = [&] {
      return beeline_copy_from_registered(move.local, move.remote.registered, rank_,
                                          move.remote.registered_offset + move.offset, move.bytes);
    };
    return begin(Carrier::nothing, [&] { return process_.ask(rank_, copy); });
  }
  if (!move.is_on_device)
    return begin(Carrier::nothing, [&] {
      return beeline_copy(process_.world(), move.local, move.remote.address + move.offset, move.bytes);
    });
  beeline_stream* const stream = queue_.stream(process_);
  return begin(Carrier::stream, [&] {
    return beeline_copy_on_stream(stream, move.local, move.remote.address + move.offset, move.bytes);
  });
}

bool Post::read_in_time(const std::vector<Move>& moves, const std::shared_ptr<const void>& uses) {
  TimedOperations::Key key{reads_key, static_cast<std::uint64_t>(rank_), queue_.number()};
  for (const Move& move : moves)
    for (const std::uint64_t part : {std::bit_cast<std::uint64_t>(move.local),
                                     std::bit_cast<std::uint64_t>(move.remote.data) + move.offset, move.bytes})
      key.push_back(part);
  const auto get_all = [moves, uses, &process = process_, rank = rank_](std::uint64_t&) -> beeline_status {
    for (const Move& move : moves) {
      const auto get = [&] {
        return beeline_get(process.world_team(), move.local, move.remote.data + move.offset, move.bytes, rank);
      };
      if (const beeline_status status = process.ask(rank, get); status != BEELINE_OK) return status;
    }
    return BEELINE_OK;
  };
  const Awaited awaited{
      .what = "the answer to a read from rank", .number = static_cast<std::uint64_t>(rank_), .needed = {&rank_, 1}};
  std::uint64_t none = 0;
  const Result result = timed_operations(process_).perform(process_, awaited, {key, timeout_ms_, true}, get_all, none);
  has_begun_ = has_begun_ || result == Result::success;
  return result == Result::success;
}

bool Post::set(const Flag& flag, gaspi_notification_t value, int rank) {
  beeline_team* const team = process_.world_team();
  if (!flag.is_on_device && !uses_stream()) [[likely]]
    return begin(queues().carrier_to(rank),
                 [&] { return beeline_signal(team, flag.signal, value, rank, queue_.number()); });
  beeline_stream* const stream = queue_.stream(process_);
  // The stream does not wait for what an engine carries.
  if ((carriers_ & static_cast<std::uint32_t>(Carrier::engine)) != 0 && !await_arrival()) return false;
  return begin(Carrier::stream, [&] { return beeline_signal_on_stream(team, flag.signal, value, rank, stream); });
}

bool Post::notify(const Flag& flag, gaspi_notification_t value) {
  // A stream carries the notification behind the queue's earlier work on it; then what an engine carries has to be at
  // its target before.
  if (queue_.has_work(Carrier::stream)) carriers_ |= static_cast<std::uint32_t>(Carrier::stream);
  if ((uses_stream() || flag.is_on_device) && queue_.has_work(Carrier::engine) && !await_arrival()) return false;
  return set(flag, value, rank_);
}

bool Post::write_notify_slowly(const Move& move, const Flag& flag, gaspi_notification_t value, beeline_hybrid* hybrid) {
  // To another node data and notification are one message. As two, the notification would wait for the
  // acknowledgement of the data, and for another kernel.
  const bool is_one_message = move.is_on_device && move.remote.data != nullptr &&
                              queues().carrier_to(rank_) == Carrier::engine &&
                              (hybrid == nullptr || move.bytes <= most_unstaged_bytes);
  if (is_one_message) {
    beeline_stream* const stream = queue_.stream(process_);
    return begin(Carrier::stream, [&] {
      return beeline_put_signal_on_stream(process_.world_team(), move.remote.data + move.offset, move.local, move.bytes,
                                          flag.signal, value, rank_, stream);
    });
  }
  return write(move, hybrid) && set(flag, value, rank_);
}

bool Post::notify_self(const Flag& flag, gaspi_notification_t value) { return set(flag, value, process_.rank()); }

}  // namespace beeline::gaspi
