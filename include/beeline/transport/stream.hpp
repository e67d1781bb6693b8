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

/// The teams of this rank whose kernels are part of a stream's work or come before it: a wait for the stream gets
/// of their failures. By bit of a team's id; any thread.
class LaunchedTeams {
 public:
  /// Of a kernel that was put on the stream.
  void note(std::uint32_t team) noexcept { word_.fetch_or(known | team, std::memory_order_relaxed); }
  /// Of those that come before an event which the stream waits for. Whose kernels it has itself stays as unknown.
  void hand_on(std::uint32_t teams) noexcept { word_.fetch_or(teams, std::memory_order_relaxed); }
  /// What is there is over.
  void forget() noexcept { word_.fetch_and(known, std::memory_order_relaxed); }
  /// All of them since the last `forget`, as far as they are known.
  [[nodiscard]] std::uint32_t teams() const noexcept {
    return static_cast<std::uint32_t>(word_.load(std::memory_order_relaxed));
  }
  /// The same; nothing where `note` was never called, so that the teams of the stream's kernels are unknown.
  [[nodiscard]] std::optional<std::uint32_t> all() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    return (word & known) == 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(word));
  }

 private:
  static constexpr std::uint64_t known = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> word_{0};
};

/// A point in a stream. Reusable; records of the same event replace each other.
class Event {
 public:
  virtual ~Event() = default;
  /// Teams whose kernels come before the last record, by bit of their id: `Stream::record` sets it, `wait_event` hands
  /// it on.
  std::atomic<std::uint32_t> teams{0};
  /// Whether the work before the last record is over; true when nothing was recorded. Throws unavailable when the last
  /// record is part of a graph, since that says nothing about the graph's runs.
  [[nodiscard]] virtual bool done() const = 0;
};

/// An in-order queue of work for one device: a CUDA stream on a GPU, a thread on a host rank.
/// Any thread may call any function; enqueuing holds a short lock and never waits for the device.
/// A stream is destroyed after its work; its destructor waits for what is still running.
///
/// While a CUDA graph captures the stream, `copy`, `fill`, `record`, `wait_event` and `launch` become part of the
/// graph. What would not be repeated by it, or cannot wait inside it, throws unavailable, and the capture goes on:
/// `write_signal` and `wait_signal` (their value is fixed), copies that go through host memory, and whatever asks about
/// the stream's progress. Programs signal and wait by `signal_on_stream` and `wait_on_stream`
/// (host/stream_operations.hpp), whose values may also lie in memory, and advance.
class Stream {
 public:
  virtual ~Stream() = default;
  [[nodiscard]] virtual const Device& device() const = 0;

  /// Copies between any two addresses of the node that this process knows; directions are found from the addresses.
  /// A range onto itself is no work. Throws invalid_argument when the two places overlap otherwise.
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Sets every byte of [destination, destination + bytes).
  virtual void fill(void* destination, unsigned char value, std::size_t bytes) = 0;
  /// `signal_on_stream` with a fixed value: sets a signal after all earlier work of this stream, data included, is
  /// visible at its owner. Signals are aligned to 8 bytes; others are refused with invalid_argument.
  virtual void write_signal(std::uint64_t* signal, std::uint64_t value) = 0;
  /// `wait_on_stream` for a fixed value: holds later work of this stream until `*signal >= value`; `signal` lies in
  /// this rank's memory. On a GPU the wait itself cannot be cancelled: `World::synchronize` releases it when the world
  /// is aborted or its deadline passes.
  virtual void wait_signal(std::uint64_t* signal, std::uint64_t value) = 0;
  /// Whether a `wait_signal` may hold back work that only `release_waits` would let go: on a GPU.
  [[nodiscard]] virtual bool holds_signal_waits() = 0;
  /// Ends the stream's pending `wait_signal`s so that its work drains; only for a world that has failed.
  virtual void release_waits() = 0;

  [[nodiscard]] virtual std::unique_ptr<Event> make_event() = 0;
  virtual void record(Event& event) = 0;
  /// Holds later work of this stream until `event` (of any stream of this process) is done. In a capture the event must
  /// have been recorded in the same one; otherwise throws unavailable.
  virtual void wait_event(Event& event) = 0;

  /// Whether all work is over, whether it failed or not. False while the stream is captured.
  [[nodiscard]] virtual bool drained() const noexcept = 0;
  /// Sleeps until the work so far is over, at most `longest_ns`, on a condition that the stream signals; on a GPU one
  /// that is put behind that work. False, at once, where only polling tells.
  [[nodiscard]] virtual bool sleep_until_drained(std::int64_t longest_ns) = 0;
  /// Whether all work is over. Throws the first failure of the stream's work, once; unavailable while the stream is
  /// captured.
  [[nodiscard]] virtual bool idle() = 0;
  /// The underlying `cudaStream_t`, or nullptr on a host rank.
  [[nodiscard]] virtual void* native() const = 0;
  /// Runs `work` on the stream's thread, in order; on a GPU on a thread of CUDA, where it must not call CUDA, and other
  /// streams' such work waits. Throws unavailable on a GPU's stream that is captured.
  virtual void enqueue(std::function<void()> work) = 0;
  /// Host device: if the stream has no work, all that this thread puts on it from now on, up to `end_here`, runs at
  /// once, on this thread, in place of the stream's; what others put on it comes behind. What fails is told as ever, by
  /// `idle`. False, and nothing has changed, where there is work, and on a GPU.
  [[nodiscard]] virtual bool begin_here() { return false; }
  virtual void end_here() {}
  /// Host device: the threads that its grids run on; nullptr on a GPU.
  [[nodiscard]] virtual HostWorkers* workers() { return nullptr; }
  /// State of the grid barrier that this stream's kernels share: they run one after the other.
  [[nodiscard]] virtual GridState* grid_state() const = 0;
  /// Whose kernels its work includes or comes after, kept by `World`'s launches and by `record` and `wait_event`.
  [[nodiscard]] virtual LaunchedTeams& launched_teams() = 0;

  /// Number of the CUDA graph capture that this stream is in; 0: in none, as on a host rank. Throws unavailable when an
  /// error has ended the capture.
  [[nodiscard]] virtual std::uint64_t capture() const { return 0; }
  /// In a capture: keeps `held` until the graph and all that is made of it are destroyed. A thread of CUDA's may let it
  /// go, so its destructor calls nothing of CUDA.
  virtual void keep_with_graph(std::shared_ptr<void> /*held*/) {}
};

/// While it lives, the stream's work is done by the thread that puts it there, if the stream had none (`begin_here`).
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

/// Whose kernels a GPU starts first. Where blocks of several streams wait for room, those of a `high` stream get it
/// before those of a `normal` one; what runs is not interrupted, and nothing else about the order of work follows. It
/// holds for kernels, also in a graph that is captured from the stream, not for copies and signals. On a host rank all
/// streams are threads of the operating system, all of one priority.
/// Source: CUDA Runtime API, cudaStreamCreateWithPriority.
enum class StreamPriority {
  normal,
  high  ///< the greatest that the device has
};

/// A new stream of `device`.
///   context     deadline and abort word of its waits; outlives the stream
///   grid_state  in the device's memory, for this stream alone; let go when the stream is destroyed
[[nodiscard]] std::unique_ptr<Stream> make_stream(const Device& device, const Context& context,
                                                  std::shared_ptr<GridState> grid_state,
                                                  StreamPriority priority = StreamPriority::normal);

}  // namespace beeline
