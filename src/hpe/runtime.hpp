// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a process keeps for its devices.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/device/context.hpp"
#include "beeline/hpe/device.hpp"
#include "beeline/runtime/device.hpp"
#include "hpe/lock_timer.hpp"

namespace beeline::hpe::detail {

class StreamState;

/// The context of a host device's streams, which wait outside of any world: it has the deadline, and a word that ends
/// their waits.
class LonelyContext {
 public:
  explicit LonelyContext(std::int64_t deadline_ns);
  [[nodiscard]] const Context& get() const { return context_; }
  void end_waits();

 private:
  std::uint64_t abort_word_ = 0;
  WaitTable table_{};
  std::uint32_t claims_ = 0;
  Context context_{};
};

/// A device, its health, its streams' lock times, and streams for blocking calls.
class DeviceState {
 public:
  DeviceState(Device device, beeline::Device info, std::int64_t deadline_ns);
  ~DeviceState();

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] const beeline::Device& info() const { return info_; }
  [[nodiscard]] const Context& context() const { return context_.get(); }

  /// Throws unavailable if the device has failed.
  void require_working() const {
    if (has_failed()) refuse();
  }
  [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// From now on the device is unusable. Only the first reason counts.
  void fail(const std::string& reason);

  /// A stream for one blocking call: an earlier call's, or a new one.
  [[nodiscard]] std::unique_ptr<StreamState> take_stream();
  ///   has_ended  whether the stream's work has ended; otherwise a later call takes the stream once it has
  void give_back(std::unique_ptr<StreamState> stream, bool has_ended);

  /// The streams of the device count their lock times while they exist, and leave them behind.
  void add(const MeasuredMutex* mutex);
  void remove(const MeasuredMutex* mutex);
  [[nodiscard]] LockTimes lock_times() const;

 private:
  [[noreturn]] void refuse() const;
  /// Streams whose work has ended meanwhile are free again.
  void sort_late_streams();

  const Device device_;
  const beeline::Device info_;
  LonelyContext context_;
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;
  std::string reason_;
  std::vector<std::unique_ptr<StreamState>> streams_;  ///< free ones, for blocking calls
  std::vector<std::unique_ptr<StreamState>> late_;     ///< of blocking calls that have ended at their deadline
  std::vector<const MeasuredMutex*> mutexes_;
  LockTimes ended_;  ///< of streams that have ended
};

/// The devices of this process. Made at the first use, and kept as long as the process.
class Runtime {
 public:
  /// Throws unavailable in a process that was forked after its parent's first use.
  [[nodiscard]] static Runtime& get();
  /// Whether CUDA may be asked about memory: not without GPUs, and not in a process that was forked after its parent's
  /// first use.
  [[nodiscard]] static bool may_ask_gpus();

  [[nodiscard]] DeviceState& state_of(Device device);
  [[nodiscard]] const std::vector<beeline::Device>& gpus() const { return gpus_; }
  [[nodiscard]] const std::string& why_no_gpus() const { return why_no_gpus_; }
  [[nodiscard]] bool has_gpus() const { return !gpus_.empty(); }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] bool reaches(Device from, Device to);

 private:
  Runtime();
  [[nodiscard]] static Runtime& of_process();
  /// Whether this process was forked after the devices' first use.
  [[nodiscard]] bool is_inherited() const;
  enum class Access : std::uint8_t { unknown, yes, no };
  [[nodiscard]] Access find_access(int from, int to) const;

  const std::uint32_t fork_depth_;
  const Config config_;
  std::string why_no_gpus_;
  const std::vector<beeline::Device> gpus_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceState>> gpu_states_;  ///< [gpus_]
  std::array<std::atomic<DeviceState*>, Device::max_host_devices> host_states_{};
  std::vector<std::atomic<Access>> access_;  ///< [gpus_, gpus_] peer access, from and to
};

}  // namespace beeline::hpe::detail
