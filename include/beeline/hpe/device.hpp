// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Heterogeneous devices of one process: any thread drives any GPU or host device, without a current device.

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/layout.hpp"

namespace beeline::hpe {

/// How long calls held and waited for locks. A call takes a lock only while it enqueues.
struct LockTimes {
  std::uint64_t calls = 0;       ///< times that a lock was taken
  std::uint64_t held_ns = 0;     ///< nanoseconds from the acquisition of a lock to its release, all calls together
  std::uint64_t longest_ns = 0;  ///< the longest of these
  std::uint64_t waited_ns = 0;   ///< nanoseconds that calls waited for a lock that another thread held

  LockTimes& operator+=(const LockTimes& other);
};

class Device;
namespace detail {
/// The device, which is known to exist.
[[nodiscard]] Device device_at(DeviceKind kind, int index);
}  // namespace detail

/// A device of this process: a GPU, or a host device, which is memory and threads of the CPU. A small value, which any
/// thread may copy and use. Calls of this layer leave the calling thread's current device of CUDA as they found it.
/// Source: seed 001, floating contexts.
class Device {
 public:
  /// A GPU that this process sees (`CUDA_VISIBLE_DEVICES` respected), by its index in the order of CUDA. Throws
  /// invalid_argument if there is none with this index.
  [[nodiscard]] static Device gpu(int index);
  /// A host device. All host devices share the CPU, but each has its own memory and streams, so that programs for
  /// several devices run on machines without GPUs. Throws invalid_argument for an index outside [0, max_host_devices).
  [[nodiscard]] static Device host(int index = 0);
  /// The GPUs that this process sees, in the order of CUDA; empty without any.
  [[nodiscard]] static std::vector<Device> gpus();
  /// `gpus()`; on a machine without GPUs the first `host_devices` host devices, 0 to max_host_devices.
  [[nodiscard]] static std::vector<Device> all(int host_devices = 1);
  static constexpr int max_host_devices = 64;

  [[nodiscard]] bool is_gpu() const { return kind_ == DeviceKind::gpu; }
  [[nodiscard]] DeviceKind kind() const { return kind_; }
  [[nodiscard]] int index() const { return index_; }
  /// As in "GPU 0 (NVIDIA H100 80GB HBM3)" and "host device 1".
  [[nodiscard]] std::string name() const;

  /// Whether kernels and copies of this device access the memory of `other` directly. The first call for two GPUs
  /// enables their peer access, for the rest of the process. False between different devices if BEELINE_PEER_ACCESS is
  /// 0; `copy` then stages data through host memory.
  [[nodiscard]] bool reaches(Device other) const;
  /// Lock times of all streams of the device, those that have ended included.
  [[nodiscard]] LockTimes lock_times() const;
  /// Throws unavailable, with the reason, if a kernel's fault or the loss of the device has made it unusable.
  void require_working() const;

  friend bool operator==(const Device&, const Device&) = default;

 private:
  friend Device detail::device_at(DeviceKind kind, int index);
  Device(DeviceKind kind, int index) : kind_(kind), index_(index) {}
  DeviceKind kind_;
  int index_;
};

/// For tests: from now on the device behaves as if it had disappeared. Calls that use it throw unavailable, and waits
/// for its streams end with the same error.
void simulate_loss(Device device);

}  // namespace beeline::hpe
