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

/// What waiting streams need of their rank.
struct WaitingStreamsClient {
  std::uint64_t* counters = nullptr;   ///< [tags] where its kernels trigger, in memory of its device
  std::uint64_t* completed = nullptr;  ///< [streams] in pinned memory: operations of each that are over
  std::uint32_t tags = 1, streams = 1;
  std::uint64_t deadline_ns = 0;  ///< of what says none itself
  std::function<std::unique_ptr<Stream>()> make_stream;
  std::function<std::byte*(std::uint32_t peer, std::uint64_t offset)> address_of;
  std::function<std::uint64_t(const std::uint64_t* counter)> read;
  std::function<bool(const void* address)> needs_engine;  ///< whether only an engine reaches it, no stream of a GPU
  std::function<bool()> has_failed;                       ///< whether the team is aborted, or its world
  std::function<void()> end_team;                         ///< aborts it where only its world is
  std::function<void(const std::string& reason)> fail;    ///< aborts it
  /// Enqueues what is done unless its guard forbids it; empty: copy engines do it, whatever released the wait.
  std::function<void(Stream&, const StreamMove& first, const StreamMove& second, const MoveGuard& guard)> move_guarded;
  std::uint64_t* released = nullptr;  ///< in host memory; nullptr: there is no guard
  GuardWords* guards = nullptr;       ///< [streams, most_armed] in host memory
  std::uint64_t* verdicts = nullptr;  ///< [streams] in memory of the device
};

/// Each armed operation is work of a stream: a wait for its tag's count, the copy, the signal. While it waits neither
/// multiprocessors nor CPUs do anything. A tag has a stream from its first operation that is armed until its last is
/// over. A thread looks now and then whether one is overdue, or the team aborted: then it releases the waits, so that
/// the streams drain; on a GPU the copies behind them run then, unless they are guarded. What is guarded can be
/// cancelled; it keeps its place on the stream until its count is reached, or the streams end.
class WaitingStreams final : public TriggerBackEnd {
 public:
  /// Operations of a stream that are armed at most: a GPU's stream takes no more work at some point, and would hold up
  /// the thread that arms.
  static constexpr std::size_t most_armed = 64;

  explicit WaitingStreams(WaitingStreamsClient client);
  /// Waits until its streams are drained, up to the deadline.
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
    std::uint64_t numbered = 0;   ///< operations that it was given
    std::uint64_t latest_ns = 0;  ///< when an operation was last seen over
    std::deque<Armed> armed;      ///< that are not seen over

    /// The first that is not cancelled; nullptr: none.
    [[nodiscard]] const Armed* first() const;
  };

  // With the lock held.
  [[nodiscard]] Lane& lane_for(const TriggeredCommands& what);
  /// Throws what a stream refuses, before it has work.
  [[nodiscard]] StreamMove move_of(const Command& command) const;
  void enqueue(Lane& lane, const TriggeredCommands& what, std::uint64_t* completed);
  void look(Lane& lane, std::uint64_t now_ns);
  [[nodiscard]] MoveGuard guard_of(const Lane& lane, std::uint64_t number) const;
  /// nullptr: it is over.
  [[nodiscard]] Armed* find(ArmedOperation operation);
  /// Whether the kernel of an operation that the host has cancelled skips it.
  [[nodiscard]] bool is_skipped(const MoveGuard& guard) const;
  [[nodiscard]] bool any_armed();
  [[nodiscard]] std::uint64_t overdue_ns(const Lane& lane) const;
  [[nodiscard]] std::string find_overdue() const;
  void release_all();

  /// Up to the deadline.
  [[nodiscard]] bool await_idle();
  /// Cancelled operations, which nothing else ends.
  void drop_cancelled();
  void watch();

  const WaitingStreamsClient client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  bool released_ = false, closing_ = false;
  std::thread watcher_;
};

}  // namespace beeline
