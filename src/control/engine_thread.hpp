// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One thread of an engine.

#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "control/command_worker.hpp"
#include "control/host_triggers.hpp"
#include "control/mapped_memory.hpp"
#include "control/refusals.hpp"
#include "control/remote_queue.hpp"
#include "memory/memory_users.hpp"

namespace beeline {

/// What a CPU thread wakes an engine's thread by.
class Bell final : public Waker {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  void wake() noexcept override;
  /// Until it is woken, or has been since the last call, or `us` microseconds.
  void wait(int us) noexcept;

 private:
  sem_t semaphore_{};
};

/// Batches of words that a thread has under way: a GPU stores about a million words a second, on however many streams,
/// and each batch costs it one more. The next words wait, and go together.
inline constexpr std::size_t most_word_batches = 2;

/// Serves the sources of commands that it is given, in turn: up to `command_batch` commands of each at a time. A ring
/// below is such a source.
class alignas(fetched_bytes) EngineThread {
 public:
  struct Options {
    int poll_us = 0;           ///< between looks when there is nothing to do; 0: it spins
    bool is_timed = false;     ///< whether the parts of its work are timed
    std::vector<int> cores{};  ///< that it may run on; none: all
    /// Makes each of its workers.
    std::function<std::unique_ptr<CommandWorker>(const EngineClient&)> make = [](const EngineClient& client) {
      return make_worker(client);
    };
  };
  ///   refusals  where it adds its own; outlives it
  EngineThread(const EngineClient& client, Refusals& refusals, const Options& options);
  ~EngineThread();

  ///   source  outlives its removal, or this thread
  ///   mirror  see CommandWorker::end_ring
  void add(CommandSource& source, std::uint64_t* mirror = nullptr);
  /// Returns when it uses the source no more; false where it had not got it.
  bool remove(const CommandSource& source);
  /// Counts the triggers that are posted to a source of its own, and does what they fire, from now until it is removed.
  ///   queue  the source's number in the table, which outlives that
  void serve_triggers(const CommandSource& source, HostTriggers& table, std::uint32_t queue);
  [[nodiscard]] std::size_t sources() const { return sources_; }

  [[nodiscard]] EngineStatistics statistics() const;

 private:
  struct Served;
  /// A ring's commands in a batch.
  struct Part {
    Served* ring;
    std::size_t first, count;    ///< of the batch's commands
    std::uint64_t done_by_then;  ///< of the ring's, with what they have fired, when these are over
  };
  /// Commands that are submitted together: words of several rings, gathered for one call of the driver, or all kinds of
  /// one ring.
  struct Batch {
    std::array<Command, command_batch> commands{};
    std::array<FiredCommand, command_batch> fired{};  ///< which of the commands are of operations that have fired
    std::size_t count = 0;
    std::vector<Part> parts{};     ///< what is under way
    std::uint64_t submission = 0;  ///< see CommandWorker::submit
    std::uint64_t begun_at = 0;    ///< by the clock, where this is timed
    bool moves = false;            ///< of what is under way: not only words
  };
  /// A worker, and its batches, which end in their order.
  struct alignas(fetched_bytes) Lane {
    std::unique_ptr<CommandWorker> worker;
    std::array<Batch, batches_under_way> batches{};
    std::size_t oldest = 0, under_way = 0;  ///< of the batches
    std::size_t moving = 0;                 ///< of those under way, that are not only words

    [[nodiscard]] bool has_room() const { return under_way < batches_under_way; }
    /// That is filled next.
    [[nodiscard]] Batch& next() { return batches[(oldest + under_way) % batches_under_way]; }
    /// Of a command in a batch of this lane, for its worker.
    [[nodiscard]] std::size_t slot(const Batch& batch, std::size_t command) const {
      return static_cast<std::size_t>(&batch - batches.data()) * command_batch + command;
    }
  };
  struct alignas(fetched_bytes) Served {
    CommandSource* source;
    std::uint64_t* mirror;
    Lane* lane = nullptr;                   ///< where its commands are under way
    std::size_t under_way = 0;              ///< parts
    bool own_is_under_way = false;          ///< see CommandWorker::begin_ring
    bool by_stream = false;                 ///< what it had last was under way: words in GPU memory, not in host memory
    std::uint64_t refused = 0;              ///< commands: the first, and all behind it
    HostTriggers* table = nullptr;          ///< of a ring that triggers are posted to
    std::uint32_t number = 0;               ///< the ring's, in the table
    std::uint64_t taken = 0;                ///< commands of the ring
    std::uint64_t done_by_then = 0;         ///< of these, with what they have fired, when what has begun is over
    std::uint64_t done = 0;                 ///< of these, those that are, but for what other nodes do
    std::unique_ptr<RemoteQueue> remote{};  ///< what goes to other nodes; nullptr: nothing did
  };

  /// Runs `change()` while this thread does not look.
  template <class Change>
  auto change(Change change) const;
  void run();
  /// One round over all rings. Whether any had something to do.
  bool serve_all();
  bool end_batches();
  /// Ends what other nodes have done. Whether there was anything.
  bool end_remote(Served& served);
  /// Begins words of all rings, and notes the rings whose next command is none.
  bool begin_words();
  bool begin_moves();
  /// The lane of a ring's next commands: where some are under way, or else that with the least to do. nullptr: it has
  /// no room.
  [[nodiscard]] Lane* lane_of(const Served& served, bool words_only) const;
  /// Takes and begins a ring's commands, in the lane's next batch. Whether there were any.
  bool begin_ring(Served& served, Lane& lane, bool words_only);
  void begin_commands(Served& served, Lane& lane, bool words_only);
  /// Hands what has been begun in the lane's next batch, if anything, to the device.
  ///   moves  not only words
  void submit(Lane& lane, bool moves);
  /// 0 where nothing is timed.
  [[nodiscard]] std::uint64_t now_if_timed() const;
  /// The lane's oldest batch is over.
  void end_batch(Lane& lane);
  /// A ring's commands are over.
  void end_part(const Part& part, const Lane& lane, const Batch& batch);
  /// Tells posters what is done.
  static void publish(Served& served);
  /// Waits for what a ring has begun, up to the deadline: then its commands are not completed.
  void end_now(Served& served);
  /// The next command to begin, into the next slot of a batch: what has fired comes first.
  bool take(Served& served, Batch& batch);
  /// Why the command in the batch's last slot is refused; nullptr: it has begun. Adds to `bytes`.
  const char* begin(Served& served, Lane& lane, Batch& batch, std::size_t& bytes);
  /// The same of a command for a rank of another node.
  const char* hand_over(Served& served, Batch& batch, std::size_t& bytes);
  /// Tells the table which operations are over.
  static void finish_fired(const Part& part, const Batch& batch);
  void check_triggers() const;
  void refuse(Served& served, const Command& command, const char* reason);
  /// After `idle` rounds in which there was nothing to do.
  void rest(std::uint32_t idle, std::uint64_t idle_since);
  void sleep();
  [[nodiscard]] bool has_posted() const;
  [[nodiscard]] static bool has_work(const Served& served);
  /// Whether the next command may share a call of the driver with those of other rings.
  [[nodiscard]] bool is_gathered(const Served& served) const;

  /// Sums over all sources, which this thread alone changes.
  struct Counters {
    std::atomic<std::uint64_t> commands{0}, bytes{0}, refused{0}, deepest{0}, sleeps{0}, batches{0}, begin_ns{0},
        work_ns{0};
  };

  const EngineClient client_;
  Refusals& refusals_;
  MappedMemory memory_{client_};
  MemoryUser memory_user_{*client_.memory_users};
  const int poll_us_;
  const bool is_timed_;
  mutable Bell bell_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t batches_ = 0, word_batches_ = 0;  ///< under way on all lanes; of these, only words
  std::vector<std::unique_ptr<Served>> served_;
  std::size_t turn_ = 0;                 ///< of `served_`: who begins first
  std::vector<std::size_t> moving_{};    ///< of `served_`, in this round: rings whose next command is not gathered
  mutable std::mutex mutex_;             ///< of `served_`; this thread lets it go when others wait for it
  mutable std::atomic<int> changes_{0};  ///< how many do
  std::atomic<std::size_t> sources_{0};
  Counters counters_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
