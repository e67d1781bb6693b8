// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams and events of either kind of device: in-order queues of kernels, copies and signals.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "beeline/device/context.hpp"
#include "beeline/runtime/device.hpp"

namespace beeline {

class HostWorkers;

/// The teams of this rank whose kernels are part of a stream's work or precede it: a wait for the stream reports their
/// failures. One bit for each team id. Any thread may use it.
class LaunchedTeams {
 public:
  /// Adds the team of a kernel that was put on the stream.
  ///   kernel  number of the kernel in records of waits; 0: no number
  void note(TeamSet team, std::uint16_t kernel) noexcept {
    teams_.fetch_or(team, std::memory_order_relaxed);
    are_known_.store(true, std::memory_order_relaxed);
    last_kernel_.store(kernel, std::memory_order_relaxed);
  }
  /// The kernel that was put on the stream last, its number, as passed to `note`.
  [[nodiscard]] std::uint16_t last_kernel() const noexcept { return last_kernel_.load(std::memory_order_relaxed); }
  /// Adds the teams whose kernels precede an event for which the stream waits. This does not change whether the teams
  /// of the stream's own kernels are known.
  void hand_on(TeamSet teams) noexcept { teams_.fetch_or(teams, std::memory_order_relaxed); }
  /// Removes all teams: the stream's work has ended.
  void forget() noexcept { teams_.store(0, std::memory_order_relaxed); }
  /// The known teams since the last `forget`.
  [[nodiscard]] TeamSet teams() const noexcept { return teams_.load(std::memory_order_relaxed); }
  /// As `teams`; no value if `note` was never called, since the teams of the stream's kernels are then unknown.
  [[nodiscard]] std::optional<TeamSet> all() const noexcept {
    return are_known_.load(std::memory_order_relaxed) ? std::optional(teams()) : std::nullopt;
  }

 private:
  std::atomic<TeamSet> teams_{0};
  std::atomic<bool> are_known_{false};  ///< whether `note` was called
  std::atomic<std::uint16_t> last_kernel_{0};
};

/// A point in a stream. Reusable; records of the same event replace each other.
class Event {
 public:
  virtual ~Event() = default;
  /// Teams whose kernels precede the last record, one bit for each team id. `Stream::record` sets the bits,
  /// `wait_event` adds them to the stream that waits.
  std::atomic<TeamSet> teams{0};
  /// Whether the work before the last record has ended; true if nothing was recorded. Throws unavailable if the last
  /// record is part of a graph, since the event then does not follow the graph's runs.
  [[nodiscard]] virtual bool done() const = 0;
};

/// A signal and its new value.
struct SignalWrite {
  std::uint64_t* signal;
  std::uint64_t value;
};

/// An in-order queue of work for one device: a CUDA stream on a GPU, a thread on a host rank.
/// Any thread may call any function; enqueuing holds a short lock and never waits for the device.
/// The destructor waits for work that is still running.
///
/// While a CUDA graph captures the stream, `copy`, `fill`, `record`, `wait_event` and `launch` become part of the
/// graph. Functions that a graph cannot repeat, or that would wait inside it, throw unavailable, and the capture goes
/// on: `write_signal` and `wait_signal` (their value is fixed), copies through host memory, fills of memory on other
/// nodes, copies from one rank of another node to another, and functions that ask for the stream's progress. Programs
/// signal and wait by `signal_on_stream` and `wait_on_stream` (host/stream_operations.hpp), which take their values
/// also from memory, where they grow from run to run.
class Stream {
 public:
  virtual ~Stream() = default;
  [[nodiscard]] virtual const Device& device() const = 0;

  /// Copies between any two addresses that this process knows, of this node or of ranks on other nodes; the addresses
  /// determine the direction. A copy of a range onto itself does nothing. Throws invalid_argument if the ranges overlap
  /// otherwise.
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Sets every byte of [destination, destination + bytes).
  virtual void fill(void* destination, unsigned char value, std::size_t bytes) = 0;
  /// `signal_on_stream` with a fixed value: sets a signal after all earlier work of this stream, data included, is
  /// visible at its owner. A signal that is not aligned to 8 bytes is refused with invalid_argument.
  virtual void write_signal(std::uint64_t* signal, std::uint64_t value) = 0;
  /// `write_signal` for two signals, in this order. On a GPU they are one operation of the stream, which takes less
  /// time than two.
  virtual void write_signals(const SignalWrite& first, const SignalWrite& second) {
    write_signal(first.signal, first.value);
    write_signal(second.signal, second.value);
  }
  /// `wait_on_stream` for a fixed value: holds later work of this stream until `*signal >= value`; `signal` is in this
  /// rank's memory. On a GPU the wait itself cannot be cancelled: `World::synchronize` releases it when the world is
  /// aborted or its deadline passes.
  virtual void wait_signal(std::uint64_t* signal, std::uint64_t value) = 0;
  /// Whether a `wait_signal` may hold later work until `release_waits` is called: only on a GPU.
  [[nodiscard]] virtual bool holds_signal_waits() = 0;
  /// Ends the stream's pending `wait_signal`s so that its work drains; only for a world that has failed.
  virtual void release_waits() = 0;

  [[nodiscard]] virtual std::unique_ptr<Event> make_event() = 0;
  virtual void record(Event& event) = 0;
  /// Holds later work of this stream until `event` (of any stream of this process) is done. In a capture the event must
  /// have been recorded in the same capture; otherwise throws unavailable.
  virtual void wait_event(Event& event) = 0;

  /// Whether all work has ended, with or without failures. False while the stream is captured.
  [[nodiscard]] virtual bool drained() const noexcept = 0;
  /// Sleeps until the work that is now in the stream has ended, for at most `longest_ns`; the stream wakes this thread.
  /// Returns false at once if the stream can only be polled.
  [[nodiscard]] virtual bool sleep_until_drained(std::int64_t longest_ns) = 0;
  /// Whether all work has ended. Throws the first failure of the stream's work, once; unavailable while the stream is
  /// captured.
  [[nodiscard]] virtual bool idle() = 0;
  /// The underlying `cudaStream_t`, or nullptr on a host rank.
  [[nodiscard]] virtual void* native() const = 0;
  /// Runs `work` in the order of the stream: on a host rank on the stream's thread; on a GPU on a thread of CUDA, where
  /// `work` must not call CUDA, and delays `work` of other streams. Throws unavailable while a GPU's stream is
  /// captured.
  virtual void enqueue(std::function<void()> work) = 0;
  /// Host device: if the stream is empty, work that this thread puts on it until `end_here` runs at once on this
  /// thread, not on the stream's thread. Work of other threads comes after it. `idle` reports failures as usual.
  /// Returns false, without effect, if the stream has work, and on a GPU.
  [[nodiscard]] virtual bool begin_here() { return false; }
  virtual void end_here() {}
  /// Host device: the threads on which the stream's grids run; nullptr on a GPU.
  [[nodiscard]] virtual HostWorkers* workers() { return nullptr; }
  /// State of the grid barrier. The stream's kernels share it, since they run one after the other.
  [[nodiscard]] virtual GridState* grid_state() const = 0;
  /// The teams of kernels in the stream's work or before it, kept by launches, `record` and `wait_event`.
  [[nodiscard]] virtual LaunchedTeams& launched_teams() = 0;

  /// Number of the CUDA graph capture of this stream; 0 if the stream is not captured, as always on a host rank. Throws
  /// unavailable when an error has ended the capture.
  [[nodiscard]] virtual std::uint64_t capture() const { return 0; }
  /// In a capture: keeps `held` until the graph and everything made from it are destroyed. A thread of CUDA may destroy
  /// `held`, so its destructor must not call CUDA.
  virtual void keep_with_graph(std::shared_ptr<void> /*held*/) {}
};

/// During its lifetime, the calling thread itself runs the work that it puts on the stream, if the stream had no work
/// before (`begin_here`).
class WorkHere {
 public:
  explicit WorkHere(Stream& stream) : stream_(stream.begin_here() ? &stream : nullptr) {}
  WorkHere(const WorkHere&) = delete;
  WorkHere& operator=(const WorkHere&) = delete;
  ~WorkHere() {
    if (stream_ != nullptr) stream_->end_here();
  }
  [[nodiscard]] bool is_here() const { return stream_ != nullptr; }

 private:
  Stream* stream_;
};

/// The priority of a stream's kernels on a GPU. If blocks of several streams wait for room, blocks of a `high` stream
/// start before blocks of a `normal` stream. Running blocks are not interrupted, and no other order is implied. The
/// priority applies to kernels, also in a graph captured from the stream, but not to copies and signals. On a host rank
/// all streams have the same priority.
/// Source: CUDA Runtime API, cudaStreamCreateWithPriority.
enum class StreamPriority {
  normal,
  high  ///< the highest priority of the device
};

/// A new stream of `device`.
///   context     deadline and abort word of its waits; outlives the stream
///   grid_state  grid state in the device's memory, used by this stream only; released when the stream is destroyed
[[nodiscard]] std::unique_ptr<Stream> make_stream(const Device& device, const Context& context,
                                                  std::shared_ptr<GridState> grid_state,
                                                  StreamPriority priority = StreamPriority::normal);

}  // namespace beeline
