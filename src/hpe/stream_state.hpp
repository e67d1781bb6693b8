// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a stream of this layer consists of.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/hpe/stream.hpp"
#include "beeline/transport/stream.hpp"
#include "core/fork.hpp"
#include "hpe/awaited_word.hpp"
#include "hpe/idle_events.hpp"
#include "hpe/lock_timer.hpp"
#include "hpe/runtime.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

struct LaneOfStream;

/// What the transfers of files on one stream share.
struct FilesOfStream {
  std::mutex mutex;  ///< held while a transfer is enqueued
  std::weak_ptr<LaneOfStream> lane;
};

class StreamState {
 public:
  [[nodiscard]] static std::unique_ptr<StreamState> make(DeviceState& device, StreamPriority priority);
  [[nodiscard]] static std::unique_ptr<StreamState> adopt(DeviceState& device, void* native);
  ~StreamState();

  [[nodiscard]] DeviceState& device() const { return device_; }
  /// An address that tells streams apart. No later stream has that of one that ended with work left.
  [[nodiscard]] const void* identity() const { return identity_.get(); }
  /// The device's own stream: for work on memory that the device reaches.
  [[nodiscard]] beeline::Stream& own() const { return *own_; }

  /// Runs `call(Stream&)`, which enqueues work, under the lock. Errors name the device.
  template <class Call>
  void enqueue(const Call& call) {
    enqueue_on(*stream_, call);
  }
  /// As `enqueue`, on the device's own stream.
  template <class Call>
  void enqueue_own(const Call& call) {
    enqueue_on(*own_, call);
  }
  /// As `enqueue_own`, without the lock: for the only user of a stream, and calls that may take long.
  template <class Call>
  void call_own(const Call& call) {
    device_.require_working();
    try {
      call(*own_);
    } catch (const Error& error) {
      explain(error);
      throw;
    }
  }
  /// Runs `call`, which pins memory, with the stream's GPU as the current device: otherwise a thread without a context
  /// would get that of GPU 0.
  void on_device(const std::function<void()>& call) const;
  /// As `Stream::wait_for`.
  void wait_for(StreamState& other);
  /// Of a host device's stream: a stream of the GPU for this stream's work there. The work is enqueued during the call,
  /// between waits of the two streams for each other. Enqueued later, it might be queued behind the wait of another
  /// stream of the GPU for this stream, and neither would end.
  [[nodiscard]] StreamState& stream_beside(DeviceState& gpu);
  /// An event of the device, for one record of this stream.
  [[nodiscard]] std::shared_ptr<Event> take_event() { return IdleEvents::take(events_, *own_); }
  /// The word for which this stream waits, and which `storer`, another stream, stores.
  [[nodiscard]] std::shared_ptr<AwaitedWord> word_of(const void* storer);
  /// The word that this stream stores, and for which `waiter`, a host device's stream, waits.
  [[nodiscard]] std::shared_ptr<AwaitedWord> mark_for(const void* waiter);

  /// Holds later work until `*word >= value`. The caller has to end the wait in any case: unlike those of
  /// `beeline::Stream::wait_signal`, `~StreamState` does not end it.
  void hold_until(std::uint64_t* word, std::uint64_t value);
  [[nodiscard]] FilesOfStream& files() { return files_; }

  [[nodiscard]] bool is_done();
  void synchronize(const Waiting& waiting);
  [[nodiscard]] LockTimes lock_times() const { return mutex_.times(); }

 private:
  StreamState(DeviceState& device, std::unique_ptr<beeline::Stream> own);
  template <class Call>
  void enqueue_on(beeline::Stream& stream, const Call& call) {
    device_.require_working();
    try {
      const std::lock_guard lock(mutex_);
      call(stream);
    } catch (const Error& error) {
      explain(error);
      throw;
    }
  }
  /// Throws a better error than `error` if the device has failed.
  void explain(const Error& error);
  /// Whether a few polls in a row see the end of the work.
  [[nodiscard]] bool is_done_soon();
  /// Waits a little for the stream, between two polls.
  void nap(std::chrono::nanoseconds period) const;
  void end_waits() noexcept;
  void keep_identity();
  [[nodiscard]] std::shared_ptr<AwaitedWord> word_in(AwaitedWords& words, const void* other) const;
  void wait_for_gpu(StreamState& other);
  void wait_for_host(StreamState& other);

  DeviceState& device_;
  std::unique_ptr<std::byte> identity_ = std::make_unique<std::byte>();
  MeasuredMutex mutex_;
  beeline::Stream* const own_;
  const std::shared_ptr<IdleEvents> events_ = std::make_shared<IdleEvents>();
  AwaitedWords words_;  ///< that other streams store
  AwaitedWords marks_;  ///< that this stream stores
  FilesOfStream files_;
  std::mutex beside_mutex_;
  std::map<int, std::unique_ptr<StreamState>> beside_;  ///< [GPU] streams of a host device's stream
  // A forked process leaves the stream alone.
  beeline::detail::ProcessOwned<beeline::Stream> stream_;  ///< wraps `own_`
};

/// A stream of a device for one blocking call, which no other call uses meanwhile.
class TakenStream {
 public:
  explicit TakenStream(DeviceState& device) : device_(device), stream_(device.take_stream()) {}
  ~TakenStream() { device_.give_back(std::move(stream_), has_ended_); }
  TakenStream(const TakenStream&) = delete;
  TakenStream& operator=(const TakenStream&) = delete;

  [[nodiscard]] StreamState& get() const { return *stream_; }
  void synchronize(const Waiting& waiting) {
    stream_->synchronize(waiting);
    has_ended_ = true;
  }

 private:
  DeviceState& device_;
  std::unique_ptr<StreamState> stream_;
  bool has_ended_ = false;
};

/// As `hpe::copy`.
void copy(void* to, const void* from, std::size_t bytes, StreamState& stream);
void fill(void* to, unsigned char value, std::size_t bytes, StreamState& stream);

/// Wraps `own`: copies of memory that the device does not reach are staged, and memory that is pageable is copied by
/// the CPU.
[[nodiscard]] std::unique_ptr<beeline::Stream> make_reaching_stream(DeviceState& device,
                                                                    std::unique_ptr<beeline::Stream> own);

}  // namespace beeline::hpe::detail
