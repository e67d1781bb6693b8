// SPDX-License-Identifier: Apache-2.0
#include "gaspi/passive.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "gaspi/moves.hpp"
#include "gaspi/remote_words.hpp"
#include "gaspi/service.hpp"
#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

namespace {

constexpr unsigned segment_bits = 8;

std::atomic<Passive*> opened{nullptr};

/// Sleeps between two looks of a call: 5 us at first, then half as long as it has waited, at most 4 ms.
class Sleeper {
 public:
  /// Begins a slice of `ns`.
  void begin_slice(std::uint64_t ns) { slice_end_ns_ = waited_ns() + ns; }
  /// Whether the call has just begun.
  [[nodiscard]] bool is_early() const { return waited_ns() < 10'000'000; }
  /// What is left of the slice.
  [[nodiscard]] std::chrono::nanoseconds left() const {
    const std::uint64_t waited = waited_ns();
    return std::chrono::nanoseconds(waited >= slice_end_ns_ ? 0 : slice_end_ns_ - waited);
  }
  /// Sleeps once, not beyond the slice. Returns false, without a sleep, if the slice is over.
  [[nodiscard]] bool sleep() const {
    const std::uint64_t waited = waited_ns();
    if (waited >= slice_end_ns_) return false;
    const std::uint64_t ns = std::min(std::clamp<std::uint64_t>(waited / 2, 5'000, 4'000'000), slice_end_ns_ - waited);
    const timespec pause{0, static_cast<long>(ns)};
    ::nanosleep(&pause, nullptr);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::uint64_t waited_ns() const { return static_cast<std::uint64_t>((Clock::now() - start_).count()); }
  const Clock::time_point start_ = Clock::now();
  std::uint64_t slice_end_ns_ = 0;
};

/// Counts a call while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  ~Counted() { count_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

/// Reads a message from its sender.
beeline_status copy_message(const Process& process, int sender, const Move& move) {
  if (!move.is_on_device && move.remote.data != nullptr)
    return beeline_get(process.world_team(), move.local, move.remote.data + move.offset, move.bytes, sender);
  if (move.remote.registered != nullptr)
    return beeline_copy_from_registered(move.local, move.remote.registered, sender,
                                        move.remote.registered_offset + move.offset, move.bytes);
  return beeline_copy(process.world(), move.local, move.remote.address + move.offset, move.bytes);
}

/// The same, while no recovery goes on.
beeline_status read_message(const Process& process, int sender, const Move& move) {
  return process.ask(sender, [&] { return copy_message(process, sender, move); });
}

}  // namespace

Passive& passive() { return *opened.load(std::memory_order_acquire); }

void Passive::open(Process& process) {
  const auto ranks = static_cast<std::size_t>(process.size());
  void* cells = nullptr;
  require_ok(beeline_allocate(process.world_team(), ranks * sizeof(Cell), BEELINE_HEAP_PINNED, &cells));
  cells_ = static_cast<Cell*>(cells);
  require_ok(beeline_allocate_signals(process.world_team(), ranks, BEELINE_HEAP_PINNED, &confirmed_));
  require_ok(beeline_allocate_signals(process.world_team(), ranks, BEELINE_HEAP_PINNED, &refused_));
  received_.resize(ranks);
  seen_.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) outgoing_.push_back(std::make_unique<Outgoing>());
  opened.store(this, std::memory_order_release);
}

void Passive::close(Process&) { opened.store(nullptr, std::memory_order_release); }

bool Passive::serve(Process& process) {
  if (waiting_.load() == 0) return false;
  bool any = false;
  for (int sender = 0; sender < process.size(); ++sender) {
    std::uint64_t& seen = seen_[static_cast<std::size_t>(sender)];
    const std::uint64_t number = number_of(sender);
    any = std::exchange(seen, number) != number || any;
  }
  if (any) {
    const std::lock_guard lock(arriving_);
    arrivals_.fetch_add(1);
    arrived_.notify_all();
  }
  return false;  // a message is no reason to look more often
}

beeline_status Passive::post(const Process& process, int rank, Outgoing& to) {
  Cell& cell = cells_[process.rank()];
  auto& words = to.words[to.number % 2];
  words[0] = to.message.offset;
  words[1] = to.is_in_flight ? to.message.size << segment_bits | to.message.segment : 0;
  return beeline_put_signal(process.world_team(), &cell, words, sizeof words, &cell.number, to.number, rank,
                            service_queue);
}

Result Passive::send(const Process& process, int rank, const PassiveMessage& message, std::uint64_t timeout_ms) {
  Outgoing& to = *outgoing_[static_cast<std::size_t>(rank)];
  const Awaited awaited{
      .what = "the gaspi_passive_receive of rank", .number = static_cast<std::uint64_t>(rank), .needed = {&rank, 1}};
  std::unique_lock lock(to.calls, std::defer_lock);
  Sleeper sleeper;
  return wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    sleeper.begin_slice(slice_ns);
    do {
      if (!lock.owns_lock() && !lock.try_lock()) continue;
      // An earlier message: that of this call, or one whose call was not repeated after its time-out.
      const bool is_confirmed = load_acquired(confirmed_[rank]) >= to.number;
      if (to.is_in_flight && is_confirmed) {
        to.is_in_flight = false;
        if (to.message == message) {
          if (load_acquired(refused_[rank]) != to.number) return BEELINE_OK;
          throw Failure(fmt::format("rank {} has not received the message, since segment {} was deleted meanwhile",
                                    rank, message.segment));
        }
      }
      if (to.is_in_flight || !is_confirmed) continue;
      to.message = message, ++to.number, to.is_in_flight = true;
      if (const beeline_status status = post(process, rank, to); status != BEELINE_OK) {
        --to.number, to.is_in_flight = false;
        return status;
      }
    } while (sleeper.sleep());
    return BEELINE_TIMEOUT;
  });
}

std::uint64_t Passive::number_of(int sender) const { return load_acquired(cells_[sender].number); }

beeline_status Passive::confirm(const Process& process, int sender, std::uint64_t number) {
  const beeline_status status =
      beeline_signal(process.world_team(), &confirmed_[process.rank()], number, sender, service_queue);
  if (status == BEELINE_OK) received_[static_cast<std::size_t>(sender)] = number;
  return status;
}

beeline_status Passive::drop(const Process& process, int sender, std::uint64_t number) {
  const beeline_status status = confirm(process, sender, number);
  return status == BEELINE_OK ? BEELINE_IN_PROGRESS : status;
}

beeline_status Passive::refuse_message(const Process& process, int sender, std::uint64_t number,
                                       gaspi_segment_id_t segment) {
  process.log(
      fmt::format("gaspi_passive_receive: a message of rank {} is dropped, since that rank has deleted segment {}",
                  sender, segment));
  const beeline_status status =
      beeline_signal(process.world_team(), &refused_[process.rank()], number, sender, service_queue);
  return status == BEELINE_OK ? drop(process, sender, number) : status;
}

beeline_status Passive::receive_from(const Process& process, int sender, const PassiveMessage& to) {
  const std::uint64_t number = number_of(sender);
  if (number == received_[static_cast<std::size_t>(sender)] || !process.health().is_healthy(sender))
    return BEELINE_IN_PROGRESS;
  const std::uint64_t place = load_acquired(cells_[sender].place), offset = load_acquired(cells_[sender].offset);
  if (place == 0) return drop(process, sender, number);
  const auto segment = static_cast<gaspi_segment_id_t>(place & ((1u << segment_bits) - 1));
  const std::uint64_t size = place >> segment_bits;
  if (size > to.size)
    refuse(GASPI_ERR_INV_SIZE,
           fmt::format("the message of rank {} has {} bytes, and {} were given", sender, size, to.size));
  const UseOfBoth use(segment, to.segment);
  const Part source = process.segments().part(segment, sender), mine = require_own_part(process, to.segment);
  if (!is_within(to.offset, size, mine.bytes))  // another thread may have replaced the segment meanwhile
    refuse(GASPI_ERR_INV_LOC_OFF, fmt::format("{} bytes from offset {} on, in the local segment {} of {} bytes", size,
                                              to.offset, to.segment, mine.bytes));
  if (!is_within(offset, size, source.bytes)) return refuse_message(process, sender, number, segment);
  const bool is_on_device = source.kind == Memory::device || mine.kind == Memory::device;
  const beeline_status status =
      read_message(process, sender, {mine.address + to.offset, source, offset, size, is_on_device});
  return status == BEELINE_OK ? confirm(process, sender, number) : status;
}

Result Passive::receive(const Process& process, const PassiveMessage& to, gaspi_rank_t& sender,
                        std::uint64_t timeout_ms) {
  const Awaited awaited{.what = "a passive message", .needs_a_peer = true};
  const Counted counted(waiting_);
  Sleeper sleeper;
  return wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    sleeper.begin_slice(slice_ns);
    for (;;) {
      const std::uint64_t arrivals = arrivals_.load();
      const beeline_status status = receive_any(process, to, sender);
      if (status != BEELINE_IN_PROGRESS) return status;
      if (sleeper.is_early() ? !sleeper.sleep() : sleeper.left().count() == 0) return BEELINE_TIMEOUT;
      if (sleeper.is_early()) continue;
      std::unique_lock lock(arriving_);
      arrived_.wait_for(lock, sleeper.left(), [&] { return arrivals_.load() != arrivals; });
    }
  });
}

beeline_status Passive::receive_any(const Process& process, const PassiveMessage& to, gaspi_rank_t& sender) {
  const std::lock_guard lock(receiving_);
  for (int k = 0; k < process.size(); ++k) {
    const int candidate = (next_ + k) % process.size();
    const beeline_status status = receive_from(process, candidate, to);
    if (status == BEELINE_IN_PROGRESS) continue;
    if (status != BEELINE_OK) return status;
    next_ = candidate + 1;
    sender = static_cast<gaspi_rank_t>(candidate);
    return BEELINE_OK;
  }
  return BEELINE_IN_PROGRESS;
}

void Passive::purge(const Process& process) {
  for (int rank = 0; rank < process.size(); ++rank) {
    Outgoing& to = *outgoing_[static_cast<std::size_t>(rank)];
    const std::unique_lock lock(to.calls, std::try_to_lock);
    if (!lock.owns_lock() || !to.is_in_flight) continue;  // a thread that still sends is not disturbed
    to.is_in_flight = false;
    if (!process.health().is_healthy(rank)) continue;
    ++to.number;
    require_ok(post(process, rank, to));
  }
}

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

namespace {

/// Bytes of a local segment, as passive calls name them.
void require_local(const Process& process, const PassiveMessage& message) {
  const std::uint64_t most = configuration().passive_transfer_size_max;
  if (message.size == 0 || message.size > most)
    refuse(GASPI_ERR_INV_COMMSIZE, fmt::format("{} bytes, where messages have 1 to {}", message.size, most));
  const Part part = require_own_part(process, message.segment);
  if (!is_within(message.offset, message.size, part.bytes))
    refuse(GASPI_ERR_INV_LOC_OFF, fmt::format("{} bytes from offset {} on, in the local segment {} of {} bytes",
                                              message.size, message.offset, message.segment, part.bytes));
}

}  // namespace

gaspi_return_t pgaspi_passive_send(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                   gaspi_size_t size, gaspi_timeout_t timeout_ms) {
  return call("gaspi_passive_send", [&](Process& process) {
    require_peer(process, rank);
    const PassiveMessage message{segment_id_local, offset_local, size};
    require_local(process, message);
    const Result result = passive().send(process, rank, message, timeout_ms);
    if (result == Result::success) count(Counter::passive_sends);
    return result;
  });
}
GASPI_EXPORT(passive_send);

gaspi_return_t pgaspi_passive_receive(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local,
                                      gaspi_rank_t* rank, gaspi_size_t size, gaspi_timeout_t timeout_ms) {
  return call("gaspi_passive_receive", [&](Process& process) {
    require_pointer(rank, "rank");
    const PassiveMessage to{segment_id_local, offset_local, size};
    require_local(process, to);
    const Result result = passive().receive(process, to, *rank, timeout_ms);
    if (result == Result::success) count(Counter::passive_receives);
    return result;
  });
}
GASPI_EXPORT(passive_receive);

gaspi_return_t pgaspi_passive_queue_purge(gaspi_timeout_t) {
  return call("gaspi_passive_queue_purge", [](Process& process) { passive().purge(process); });
}
GASPI_EXPORT(passive_queue_purge);
