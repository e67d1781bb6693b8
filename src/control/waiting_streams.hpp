// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggered operations of streams that wait for a count (docs/triggers.md).

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "beeline/transport/stream.hpp"
#include "control/guarded_move.hpp"
#include "control/trigger_back_end.hpp"

namespace beeline {

/// The memory and functions of a rank that its waiting streams use.
struct WaitingStreamsClient {
  std::uint64_t* counters = nullptr;   ///< [tags] that the rank's kernels increment, in memory of its device
  std::uint64_t* completed = nullptr;  ///< [streams] in pinned memory: a stream's operations that are over
  std::uint32_t tags = 1, streams = 1;
  std::uint64_t deadline_ns = 0;  ///< deadline of operations that name none
  std::function<std::unique_ptr<Stream>()> make_stream;
  std::function<std::byte*(std::uint32_t peer, std::uint64_t offset)> address_of;
  std::function<std::uint64_t(const std::uint64_t* counter)> read;
  /// Of guarded operations: the rank of the team whose memory has an address that only the engine reaches; `no_peer` if
  /// kernels reach it. Throws unreachable if nothing reaches it.
  std::function<std::uint32_t(const void* address)> carried_to;
  std::function<bool()> has_failed;                     ///< whether the team or its world is aborted
  std::function<void()> end_team;                       ///< aborts the team if only its world is aborted
  std::function<void(const std::string& reason)> fail;  ///< aborts the team
  /// Enqueues an operation that its guard may stop; empty: copy engines carry it out, whatever has released the wait.
  std::function<void(Stream&, const StreamMove& first, const StreamMove& second, const MoveGuard& guard)> move_guarded;
  std::uint64_t* released = nullptr;  ///< in host memory; nullptr: operations have no guards
  GuardWords* guards = nullptr;       ///< [streams, most_armed] in host memory
  std::uint64_t* verdicts = nullptr;  ///< [streams] in memory of the device
};

/// Each armed operation is work of a stream: a wait for its tag's count, the copy, the signal. While it waits, neither
/// multiprocessors nor CPUs work. A tag uses one stream from its first armed operation until its last is over. A thread
/// checks periodically whether an operation is overdue, or the team is aborted. Then it releases the waits, so that the
/// streams drain; on a GPU the copies after them then run, unless they are guarded. A guarded operation can be
/// cancelled; it stays on the stream until its count is reached, or the streams end.
class WaitingStreams final : public TriggerBackEnd {
 public:
  /// Most armed operations of a stream. A GPU's stream accepts only a limited amount of work, and would then block the
  /// thread that arms.
  static constexpr std::size_t most_armed = 64;

  explicit WaitingStreams(WaitingStreamsClient client);
  /// Waits until its streams are drained, at most until the deadline.
  ~WaitingStreams() override;

  ArmedOperation arm(const TriggeredCommands& what) override;
  bool cancel(ArmedOperation operation) override;
  void close() override {}
  [[nodiscard]] bool is_over(ArmedOperation operation) override;
  [[nodiscard]] std::string describe(ArmedOperation operation) override;
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const override;
  [[nodiscard]] std::uint32_t armed() override;
  [[nodiscard]] const char* trigger(std::uint64_t tag, std::uint64_t count) override;

 private:
  struct Armed {
    std::uint64_t threshold, since_ns, deadline_ns;
    Command first;
    bool is_cancelled = false;
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::uint32_t tag = 0;
    std::uint64_t numbered = 0;   ///< operations given to the lane so far
    std::uint64_t latest_ns = 0;  ///< time at which an operation was last found to be over
    std::deque<Armed> armed;      ///< operations not known to be over

    /// The first operation that is not cancelled; nullptr if there is none.
    [[nodiscard]] const Armed* first() const;
  };

  // These are called with the lock held.
  [[nodiscard]] Lane& lane_for(const TriggeredCommands& what);
  /// Throws if a stream would refuse the command, before the stream has any work of the operation.
  [[nodiscard]] StreamMove move_of(const Command& command) const;
  /// Fills in which end of a guarded move the engine reaches.
  void find_carrier(StreamMove& move) const;
  void enqueue(Lane& lane, const TriggeredCommands& what, std::uint64_t* completed);
  void look(Lane& lane, std::uint64_t now_ns);
  [[nodiscard]] MoveGuard guard_of(const Lane& lane, std::uint64_t number) const;
  /// nullptr if the operation is over.
  [[nodiscard]] Armed* find(ArmedOperation operation);
  /// Cancels an operation. Returns whether its kernel skips it.
  [[nodiscard]] bool is_skipped(const MoveGuard& guard) const;
  [[nodiscard]] bool any_armed();
  [[nodiscard]] std::uint64_t overdue_ns(const Lane& lane) const;
  [[nodiscard]] std::string find_overdue() const;
  void release_all();

  /// Waits until no operation is armed, at most until the deadline. Returns whether none is.
  [[nodiscard]] bool await_idle();
  /// Ends cancelled operations, which nothing else ends.
  void drop_cancelled();
  void watch();

  const WaitingStreamsClient client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  bool released_ = false, closing_ = false;
  bool has_changed_ = false;  ///< an operation was armed, or the object closes, since the watcher looked
  std::thread watcher_;
};

}  // namespace beeline
