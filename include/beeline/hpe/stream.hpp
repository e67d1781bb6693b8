// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams of any device, for any thread.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "beeline/hpe/device.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline::hpe {

/// How a blocking call waits. It holds no lock meanwhile.
struct Waiting {
  /// Sleep between two polls, after a time `without_sleep` in which the thread only yields its core. 0: it never
  /// sleeps.
  std::chrono::microseconds poll_period{20};
  static constexpr std::chrono::microseconds without_sleep{100};
  /// The longest wait; no value: BEELINE_STREAM_DEADLINE_S.
  std::optional<std::chrono::nanoseconds> deadline;
};

namespace detail {
class StreamState;
}

/// An in-order queue of work for one device. Any thread may call any function, also at the same time; work is done in
/// the order in which the calls took the stream's lock. A call takes the lock only while it enqueues, and never waits
/// for the device. A program may capture the stream in a CUDA graph (`native`): copies and launches become part of the
/// graph; those that a graph cannot repeat, and waits, throw unavailable, and the capture goes on.
class Stream {
 public:
  /// Throws unavailable for a device that does not work.
  explicit Stream(Device device, StreamPriority priority = StreamPriority::normal);
  /// A stream over `native`, a cudaStream_t of `gpu` (nullptr: the legacy default stream), which still belongs to its
  /// owner, and outlives this object. Throws invalid_argument for a host device, and if `native` is of another GPU.
  [[nodiscard]] static Stream adopt(Device gpu, void* native);
  /// Waits for the stream's work, at most for BEELINE_STREAM_DEADLINE_S; work that has not ended then goes on. Failures
  /// that no call has reported are logged.
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) = delete;

  [[nodiscard]] Device device() const;

  /// Sets every byte of [to, to + bytes), in memory that the stream's device reaches, and no object's. Asynchronous.
  /// Throws invalid_argument as `copy` does, and unreachable.
  void fill(void* to, unsigned char value, std::size_t bytes);
  /// Runs `work` on a CPU thread in the order of the stream; on a GPU's stream it must not call CUDA, and delays such
  /// work of other streams. It must not access objects by the CPU: an access waits for all launches that use the
  /// object, and those behind `work` wait for it (`DeviceAccess` and `Object::on` give it an address). An exception of
  /// `work` is thrown by the next `synchronize` or `is_done`. Asynchronous. Throws invalid_argument for an empty
  /// function.
  void enqueue(std::function<void()> work);
  /// Holds later work of this stream until the work that is now in `other`, of any device, has ended, with or without
  /// failures. Asynchronous. The wait of a host device's stream fails at BEELINE_STREAM_DEADLINE_S: later work is
  /// skipped, and the next `synchronize` throws deadline. A GPU's stream waits for a host device's without a deadline:
  /// `synchronize` throws deadline meanwhile, and the destructor of the waiting stream ends the wait. What it waits for
  /// must not begin to use a GPU meanwhile, which may wait for this stream (docs/files.md names what does). Throws
  /// unavailable if a device does not work, and if a GPU's stream that is captured would wait for a host device's.
  void wait_for(Stream& other);

  /// Whether all work has ended. Throws the first failure of the stream's work, once: internal, with the device's
  /// name, if a kernel has failed; unavailable if the device has disappeared.
  [[nodiscard]] bool is_done();
  /// Waits until the work that is now in the stream, and what other threads add meanwhile, has ended. Throws as
  /// `is_done`, deadline, and invalid_argument in a function that was enqueued on this stream.
  void synchronize(const Waiting& waiting = {});

  [[nodiscard]] LockTimes lock_times() const;
  /// The underlying `cudaStream_t`; nullptr on a host device.
  [[nodiscard]] void* native() const;
  /// For other parts of the library.
  [[nodiscard]] detail::StreamState& state() { return *state_; }

 private:
  explicit Stream(std::unique_ptr<detail::StreamState> state);
  std::unique_ptr<detail::StreamState> state_;
};

}  // namespace beeline::hpe
