// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The queues of a process. A queue counts the requests that were posted since the last `gaspi_wait`, and knows for
/// which ranks they are and what carries them. Posting takes no lock.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "beeline/core/command.hpp"
#include "gaspi/checks.hpp"

namespace beeline::gaspi {

/// What carries a request that was posted, and has to be waited for.
enum class Carrier : std::uint32_t {
  nothing = 0,  ///< it was complete when it was posted
  engine = 1,   ///< commands to the rank's engine, as to other nodes
  stream = 2    ///< work on the queue's stream, as for GPU memory
};

class Queue {
 public:
  static constexpr int most_ranks = 1024;

  ///   reserved  of the engine's ring that carries the queue's commands
  Queue(std::uint32_t number, std::atomic<std::uint64_t>& reserved) : number_(number), reserved_(reserved) {}

  /// The queue's number, also of Beeline's queue.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] bool exists() const { return exists_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t entries() const { return entries_.load(std::memory_order_acquire); }

  /// Whether the queue has free entries. Threads that post at the same time may exceed the limit by their requests.
  [[nodiscard]] bool has_room(std::uint32_t entries) const {
    return entries_.load(std::memory_order_relaxed) + entries <= configuration().queue_size_max;
  }
  /// Notes that requests for `rank` were posted. A wait of another thread that has not seen them sees the note later.
  void note(int rank, Carrier carrier, std::uint32_t entries) {
    std::atomic<std::uint64_t>& word = ranks_[static_cast<std::size_t>(rank) / 64];
    const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
    if ((word.load(std::memory_order_seq_cst) & bit) == 0) word.fetch_or(bit, std::memory_order_seq_cst);
    const auto kind = static_cast<std::uint32_t>(carrier);
    if ((carriers_.load(std::memory_order_seq_cst) & kind) != kind) carriers_.fetch_or(kind, std::memory_order_seq_cst);
    if (carrier != Carrier::nothing && !is_to_drain_.load(std::memory_order_seq_cst))
      is_to_drain_.store(true, std::memory_order_seq_cst);
    entries_.fetch_add(entries, std::memory_order_release);  // last: a wait that counts the requests has the note
  }
  [[nodiscard]] bool has_work(Carrier carrier) const {
    return (carriers_.load(std::memory_order_seq_cst) & static_cast<std::uint32_t>(carrier)) != 0;
  }
  /// Reserves room for `commands` in the engine's ring, so that posting them does not wait. Waits for the engine at
  /// most `limit_ns`, or not at all with BEELINE_NO_TIMEOUT: then posting may wait.
  [[nodiscard]] beeline_status reserve(const Process& process, std::uint32_t commands, std::uint64_t limit_ns);
  /// The queue's stream, made with the first call.
  [[nodiscard]] beeline_stream* stream(const Process& process);

  /// Completes the requests on this rank. Throws Failure if a rank that they need has failed.
  [[nodiscard]] Result wait(const Process& process, std::uint64_t timeout_ms);
  /// Empties the queue, whatever has become of its requests.
  [[nodiscard]] Result purge(const Process& process, std::uint64_t timeout_ms);

 private:
  friend class Queues;
  class Exclusive;
  struct Taken;

  [[nodiscard]] Result complete(const Process& process, std::span<const int> needed, std::uint64_t timeout_ms);
  /// `beeline_flush_within` for this queue.
  [[nodiscard]] beeline_status flush(const Process& process, std::uint64_t limit_ns);
  void end_stream();

  const std::uint32_t number_;
  std::atomic<bool> exists_{false};
  alignas(64) std::atomic<std::uint32_t> entries_{0};
  std::atomic<std::uint64_t>& reserved_;    ///< commands since the ring was last seen empty
  std::atomic<std::uint32_t> carriers_{0};  ///< bits of Carrier
  /// Whether requests were carried since the last `Queues::drain`. A wait of the queue is local completion: data may
  /// still be on the way to other nodes after it.
  std::atomic<bool> is_to_drain_{false};
  std::atomic<bool> is_waited_for_{false};                           ///< a thread is in `wait` or `purge`
  std::array<std::atomic<std::uint64_t>, most_ranks / 64> ranks_{};  ///< bits of ranks with requests
  std::mutex making_;                                                ///< of the stream
  std::atomic<beeline_stream*> stream_{nullptr};
};

/// All queues. Opened with the process.
class Queues final : public Extension {
 public:
  Queues();
  /// The queues of the process that is running.
  [[nodiscard]] static Queues& opened() { return *opened_.load(std::memory_order_acquire); }
  void open(Process& process) override;
  void drain(Process& process) override;
  void close(Process& process) override;

  /// Refuses the number of a queue that does not exist.
  [[nodiscard]] Queue& get(gaspi_queue_id_t number) {
    if (number >= most_queues || !all_[number]->exists()) [[unlikely]]
      refuse(GASPI_ERR_INV_QUEUE, fmt::format("queue {} does not exist", number));
    return *all_[number];
  }
  /// What carries requests to host memory of `rank`.
  [[nodiscard]] Carrier carrier_to(int rank) const { return carriers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::uint32_t count() const;
  /// Makes a queue. Throws Failure if there are `most_queues`.
  [[nodiscard]] gaspi_queue_id_t create();
  void remove(gaspi_queue_id_t number);

 private:
  std::array<std::atomic<std::uint64_t>, command_rings> reserved_{};  ///< queues share rings
  std::array<std::unique_ptr<Queue>, most_queues> all_;
  std::vector<Carrier> carriers_;  ///< [ranks]
  std::mutex changing_;
  static inline constinit std::atomic<Queues*> opened_{nullptr};
};

[[nodiscard]] inline Queues& queues() { return Queues::opened(); }

}  // namespace beeline::gaspi
