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

/// A waker: a CPU thread that posts commands wakes the sleeping engine's thread with it.
class Bell final : public Waker {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  void wake() noexcept override;
  /// Waits for a call of `wake` since the last wait, at most `us` microseconds.
  void wait(int us) noexcept;

 private:
  sem_t semaphore_{};
};

/// Most batches of words in flight for one thread. A GPU stores about a million words a second, on however many
/// streams, and each batch costs one more store. Further words wait, and are stored together.
inline constexpr std::size_t most_word_batches = 2;

/// Serves command sources in turn: up to `command_batch` commands of each at a time. "Ring" below means such a source.
class alignas(fetched_bytes) EngineThread {
 public:
  struct Options {
    int poll_us = 0;           ///< time between looks while idle; 0: it spins
    bool is_timed = false;     ///< whether the parts of its work are timed
    std::vector<int> cores{};  ///< cores that the thread may run on; empty: all
    /// Makes each of the thread's workers.
    std::function<std::unique_ptr<CommandWorker>(const EngineClient&)> make = [](const EngineClient& client) {
      return make_worker(client);
    };
  };
  ///   refusals  receives this thread's refusals; must outlive the thread
  EngineThread(const EngineClient& client, Refusals& refusals, const Options& options);
  ~EngineThread();

  ///   source  must live until its removal, or the thread's end
  ///   mirror  see CommandWorker::end_ring
  void add(CommandSource& source, std::uint64_t* mirror = nullptr);
  /// Returns once the thread no longer uses the source; false if it did not serve the source.
  bool remove(const CommandSource& source);
  /// From now on, counts the triggers posted to a source that this thread serves, and carries out the operations that
  /// they fire, until the source is removed.
  ///   queue  the source's number in `table`, which must exist until then
  void serve_triggers(const CommandSource& source, HostTriggers& table, std::uint32_t queue);
  [[nodiscard]] std::size_t sources() const { return sources_; }

  [[nodiscard]] EngineStatistics statistics() const;

 private:
  struct Served;
  /// The commands of one ring in a batch.
  struct Part {
    Served* ring;
    std::size_t first, count;    ///< positions in the batch's commands
    std::uint64_t done_by_then;  ///< number of the ring's commands, fired ones included, done when these end
  };
  /// Commands that are submitted together: words of several rings, gathered for one call of the driver, or commands of
  /// all kinds of one ring.
  struct Batch {
    std::array<Command, command_batch> commands{};
    std::array<FiredCommand, command_batch> fired{};  ///< for each command: its fired operation, if any
    std::size_t count = 0;
    std::vector<Part> parts{};     ///< rings whose commands are in flight
    std::uint64_t submission = 0;  ///< see CommandWorker::submit
    std::uint64_t begun_at = 0;    ///< time of submission, if times are measured
    bool moves = false;            ///< whether the batch has other commands than words
  };
  /// A worker and its batches, which end in their order.
  struct alignas(fetched_bytes) Lane {
    std::unique_ptr<CommandWorker> worker;
    std::array<Batch, batches_under_way> batches{};
    std::size_t oldest = 0, under_way = 0;  ///< index of the oldest batch; batches in flight
    std::size_t moving = 0;                 ///< batches in flight that have other commands than words

    [[nodiscard]] bool has_room() const { return under_way < batches_under_way; }
    /// The batch that is filled next.
    [[nodiscard]] Batch& next() { return batches[(oldest + under_way) % batches_under_way]; }
    /// The worker's slot for a command of a batch of this lane.
    [[nodiscard]] std::size_t slot(const Batch& batch, std::size_t command) const {
      return static_cast<std::size_t>(&batch - batches.data()) * command_batch + command;
    }
  };
  struct alignas(fetched_bytes) Served {
    CommandSource* source;
    std::uint64_t* mirror;
    Lane* lane = nullptr;           ///< the lane of its commands in flight
    std::size_t under_way = 0;      ///< parts in flight
    bool own_is_under_way = false;  ///< see CommandWorker::begin_ring
    bool by_stream = false;     ///< result of the last `end_ring`: true of words in GPU memory, false in host memory
    std::uint64_t refused = 0;  ///< refused commands: the first, and all after it
    HostTriggers* table = nullptr;          ///< table of a ring that takes triggers; else nullptr
    std::uint32_t number = 0;               ///< the ring's number in the table
    std::uint64_t taken = 0;                ///< commands taken from the ring
    std::uint64_t seen = 0;                 ///< the source's own count of taken commands, when it last gave none
    std::uint64_t done_by_then = 0;         ///< of these, commands done once those in flight are over
    std::uint64_t done = 0;                 ///< of these, commands done; those for other nodes count as done
    std::unique_ptr<RemoteQueue> remote{};  ///< commands to other nodes; nullptr: there were none
  };

  /// Runs `change()` while this thread is not in a round.
  template <class Change>
  auto change(Change change) const;
  void run();
  /// Does one round over all rings. Returns whether any had work.
  bool serve_all();
  bool end_batches();
  /// Ends commands that other nodes have completed. Returns whether there were any.
  bool end_remote(Served& served);
  /// Begins words of all rings, and lists in `moving_` the rings whose next command is not a word.
  bool begin_words();
  bool begin_moves();
  /// The lane of a ring's next commands: the lane with its commands in flight, if any; otherwise the one with the least
  /// work. nullptr if the lane has no room.
  [[nodiscard]] Lane* lane_of(const Served& served, bool words_only) const;
  /// Takes and begins a ring's commands, in the lane's next batch. Returns whether there were any.
  bool begin_ring(Served& served, Lane& lane, bool words_only);
  void begin_commands(Served& served, Lane& lane, bool words_only);
  /// Submits the lane's next batch to the device, if it has commands.
  ///   moves  whether it has other commands than words
  void submit(Lane& lane, bool moves);
  /// The time; 0 if times are not measured.
  [[nodiscard]] std::uint64_t now_if_timed() const;
  /// Ends the lane's oldest batch, which is over.
  void end_batch(Lane& lane);
  /// Ends one ring's commands of a batch.
  void end_part(const Part& part, const Lane& lane, const Batch& batch);
  /// Publishes to posters which commands are done.
  static void publish(Served& served);
  /// Waits for a ring's commands in flight, up to the deadline; commands still in flight then are never completed.
  void end_now(Served& served);
  /// Takes the next command into the next slot of a batch: fired operations come before posted commands.
  bool take(Served& served, Batch& batch);
  /// Begins the command in the batch's next slot. Returns nullptr, or why it is refused. Adds to `bytes`.
  const char* begin(Served& served, Lane& lane, Batch& batch, std::size_t& bytes);
  /// As above, for a command to a rank of another node.
  const char* hand_over(Served& served, Batch& batch, std::size_t& bytes);
  /// Reports to the table which fired operations are over.
  static void finish_fired(const Part& part, const Batch& batch);
  void check_triggers() const;
  void refuse(Served& served, const Command& command, const char* reason);
  /// Rests after `idle` rounds without work.
  void rest(std::uint32_t idle, std::uint64_t idle_since);
  void sleep();
  [[nodiscard]] bool has_posted() const;
  [[nodiscard]] static bool has_work(const Served& served);
  /// Whether the next command may share a call of the driver with commands of other rings.
  [[nodiscard]] bool is_gathered(const Served& served) const;

  /// Sums over all sources; only this thread changes them.
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
  std::size_t batches_ = 0, word_batches_ = 0;  ///< batches in flight on all lanes; of these, only words
  std::vector<std::unique_ptr<Served>> served_;
  std::size_t turn_ = 0;                 ///< index in `served_` of the ring that begins first
  std::vector<std::size_t> moving_{};    ///< indices of this round's rings whose next command is not gathered
  mutable std::mutex mutex_;             ///< guards `served_`; this thread releases it while others wait for it
  mutable std::atomic<int> changes_{0};  ///< number of threads that wait for `mutex_`
  std::atomic<std::size_t> sources_{0};
  Counters counters_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
