// SPDX-License-Identifier: Apache-2.0
#include "gaspi/queues.hpp"

#include <sched.h>

#include <algorithm>

#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

/// The right to wait for a queue, which one thread has at a time.
class Queue::Exclusive {
 public:
  Exclusive(Queue& queue, const Process& process, std::uint64_t timeout_ms) : queue_(queue) {
    if (!queue_.is_waited_for_.exchange(true, std::memory_order_acquire)) [[likely]]
      return;
    const Result got = wait_for(process, {.what = "another thread's wait for queue", .number = queue_.number_},
                                timeout_ms, [&](std::uint64_t) {
                                  if (!queue_.is_waited_for_.exchange(true, std::memory_order_acquire))
                                    return BEELINE_OK;
                                  ::sched_yield();
                                  return BEELINE_IN_PROGRESS;
                                });
    has_ = got == Result::success;
  }
  ~Exclusive() {
    if (has_) queue_.is_waited_for_.store(false, std::memory_order_release);
  }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  explicit operator bool() const { return has_; }

 private:
  Queue& queue_;
  bool has_ = true;
};

/// The notes of a queue, which a wait takes, and gives back unless it completes the requests.
struct Queue::Taken {
  explicit Taken(Queue& from) : queue(from), carriers(from.carriers_.load(std::memory_order_seq_cst)) {
    if (carriers != 0) carriers = from.carriers_.exchange(0, std::memory_order_seq_cst);
    for (std::size_t word = 0; word < ranks.size(); ++word)
      if (from.ranks_[word].load(std::memory_order_relaxed) != 0)
        ranks[word] = from.ranks_[word].exchange(0, std::memory_order_seq_cst);
  }
  ~Taken() {
    if (is_done) return;
    queue.carriers_.fetch_or(carriers, std::memory_order_seq_cst);
    for (std::size_t word = 0; word < ranks.size(); ++word)
      if (ranks[word] != 0) queue.ranks_[word].fetch_or(ranks[word], std::memory_order_seq_cst);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  [[nodiscard]] std::vector<int> list() const {
    std::vector<int> all;
    for (int rank = 0; rank < most_ranks; ++rank)
      if ((ranks[static_cast<std::size_t>(rank) / 64] >> (rank % 64) & 1) != 0) all.push_back(rank);
    return all;
  }

  Queue& queue;
  std::uint32_t carriers;
  std::array<std::uint64_t, most_ranks / 64> ranks{};
  bool is_done = false;
};

beeline_stream* Queue::stream(const Process& process) {
  if (beeline_stream* const made = stream_.load(std::memory_order_acquire)) return made;
  const std::lock_guard lock(making_);
  if (beeline_stream* const made = stream_.load(std::memory_order_relaxed)) return made;
  beeline_stream* made = nullptr;
  require_ok(beeline_stream_create(process.world(), 0, &made), GASPI_ERR_DEVICE);
  stream_.store(made, std::memory_order_release);
  return made;
}

void Queue::end_stream() {
  if (beeline_stream* const made = stream_.exchange(nullptr)) static_cast<void>(beeline_stream_destroy(made));
}

Result Queue::complete(const Process& process, std::span<const int> needed, std::uint64_t timeout_ms) {
  const Awaited awaited{.what = "the requests of queue", .number = number_, .needed = needed};
  return wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) {
    if (beeline_stream* const made = stream_.load(std::memory_order_acquire)) {
      const beeline_status status = beeline_synchronize(made, slice_ns);
      if (status != BEELINE_OK) return status;
    }
    return flush(process, slice_ns);
  });
}

beeline_status Queue::flush(const Process& process, std::uint64_t limit_ns) {
  std::uint64_t reserved = reserved_.load();
  const beeline_status status = beeline_flush_within(process.world_team(), number_, limit_ns);
  if (status == BEELINE_OK) reserved_.compare_exchange_strong(reserved, 0);  // fails if others have posted meanwhile
  return status;
}

beeline_status Queue::reserve(const Process& process, std::uint32_t commands, std::uint64_t limit_ns) {
  while (limit_ns != BEELINE_NO_TIMEOUT) {
    const std::uint64_t reserved = reserved_.load();
    if (reserved == 0 || reserved + commands <= command_ring_depth) break;
    if (const beeline_status status = flush(process, limit_ns); status != BEELINE_OK) return status;
  }
  reserved_.fetch_add(commands);
  return BEELINE_OK;
}

Result Queue::wait(const Process& process, std::uint64_t timeout_ms) {
  const Exclusive mine(*this, process, timeout_ms);
  if (!mine) return Result::timeout;
  const std::uint32_t posted = entries_.load(std::memory_order_acquire);
  if (posted == 0) return Result::success;
  Taken taken(*this);
  const bool has_failures = process.health().failures() != 0;
  if (taken.carriers != 0 || has_failures) [[unlikely]] {
    const std::vector<int> needed = taken.list();
    if (const int lost = process.health().first_failed(needed); lost >= 0)
      throw Failure(
          fmt::format("queue {} has requests for rank {}, which has failed ({}); gaspi_queue_purge makes it "
                      "usable",
                      number_, lost, process.health().reason(lost)));
    if (taken.carriers != 0)
      if (const Result result = complete(process, needed, timeout_ms); result != Result::success) return result;
  }
  taken.is_done = true;
  entries_.fetch_sub(posted, std::memory_order_release);
  return Result::success;
}

Result Queue::purge(const Process& process, std::uint64_t timeout_ms) {
  const Exclusive mine(*this, process, timeout_ms);
  if (!mine) return Result::timeout;
  const std::uint32_t posted = entries_.load(std::memory_order_acquire);
  Taken taken(*this);
  // The service thread has ended what was in flight to lost ranks once the world has gone on without them.
  if (taken.carriers != 0)
    if (const Result result = complete(process, {}, timeout_ms); result != Result::success) return result;
  taken.is_done = true;
  entries_.fetch_sub(posted, std::memory_order_release);
  return Result::success;
}

Queues::Queues() {
  for (std::uint32_t number = 0; number < most_queues; ++number)
    all_[number] = std::make_unique<Queue>(number, reserved_[number % command_rings]);
}

void Queues::open(Process& process) {
  for (int rank = 0; rank < process.size(); ++rank)
    carriers_.push_back(beeline_team_route(process.world_team(), rank) == BEELINE_ROUTE_DIRECT ? Carrier::nothing
                                                                                               : Carrier::engine);
  for (std::uint32_t number = 0; number < configuration().queue_num; ++number) all_[number]->exists_ = true;
  opened_.store(this, std::memory_order_release);
}

void Queues::drain(Process& process) {
  for (const auto& queue : all_) {
    if (!queue->is_to_drain_.exchange(false)) continue;
    if (beeline_stream* const made = queue->stream_.load(std::memory_order_acquire)) {
      static_cast<void>(beeline_synchronize(made, process.deadline_ns() / 2));
      // Streams post to queue 0, and do not wait until data with a notification are at another node.
      static_cast<void>(beeline_quiet(process.world_team(), 0));
    }
    static_cast<void>(beeline_quiet(process.world_team(), queue->number()));
  }
}

void Queues::close(Process&) {
  opened_.store(nullptr, std::memory_order_release);
  for (const auto& queue : all_) queue->end_stream();
}

std::uint32_t Queues::count() const {
  return static_cast<std::uint32_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& queue) { return queue->exists(); }));
}

gaspi_queue_id_t Queues::create() {
  const std::lock_guard lock(changing_);
  for (const auto& queue : all_)
    if (!queue->exists_.exchange(true)) return static_cast<gaspi_queue_id_t>(queue->number());
  throw Failure(fmt::format("there are {} queues, and no more", most_queues));
}

void Queues::remove(gaspi_queue_id_t number) {
  const std::lock_guard lock(changing_);
  Queue& queue = get(number);
  if (const std::uint32_t entries = queue.entries(); entries != 0)
    throw Failure(fmt::format("queue {} has {} requests: gaspi_wait completes them", number, entries));
  queue.exists_ = false;
}

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_wait(gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return call("gaspi_wait", [&](Process& process) {
    const CountedWait counted(Counter::queue_waits, Counter::queue_wait_us);
    return queues().get(queue).wait(process, timeout_ms);
  });
}
GASPI_EXPORT(wait);

gaspi_return_t pgaspi_queue_create(gaspi_queue_id_t* queue, gaspi_timeout_t) {
  return call("gaspi_queue_create", [&](Process&) {
    require_pointer(queue, "queue");
    *queue = queues().create();
  });
}
GASPI_EXPORT(queue_create);

gaspi_return_t pgaspi_queue_delete(gaspi_queue_id_t queue) {
  return call("gaspi_queue_delete", [&](Process&) { queues().remove(queue); });
}
GASPI_EXPORT(queue_delete);

gaspi_return_t pgaspi_queue_size(gaspi_queue_id_t queue, gaspi_number_t* queue_size) {
  return call("gaspi_queue_size", [&](Process&) {
    require_pointer(queue_size, "queue_size");
    *queue_size = queues().get(queue).entries();
  });
}
GASPI_EXPORT(queue_size);

gaspi_return_t pgaspi_queue_purge(gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return call("gaspi_queue_purge", [&](Process& process) { return queues().get(queue).purge(process, timeout_ms); });
}
GASPI_EXPORT(queue_purge);
