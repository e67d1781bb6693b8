// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The GPU extension: hybrid transfers, and the endpoint of kernels. Worlds without a GPU have neither buffers nor
/// streams of it.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "beeline/gaspi/endpoint.hpp"
#include "gaspi/process.hpp"

namespace beeline::gaspi {

class Gpu final : public Extension {
 public:
  void open(Process& process) override;
  void close(Process& process) override;

  /// Whether `gaspi_gpu_init` was called.
  [[nodiscard]] bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }
  void make_ready() { is_ready_.store(true, std::memory_order_release); }
  /// CUDA's number of this rank's GPU in this process.
  [[nodiscard]] int device() const { return device_; }

  /// The hybrid transfers for a queue; queues of the same remainder share buffers. nullptr: no rank has a GPU.
  [[nodiscard]] beeline_hybrid* hybrid_of(std::uint32_t queue) const { return hybrids_[queue % hybrids_.size()]; }
  /// Sets threshold and chunk of this rank's later transfers. Throws Failure if they do not fit the buffers.
  void set_hybrid(std::uint64_t threshold_bytes, std::uint64_t chunk_bytes);

  /// The endpoint, with the segments as they are now.
  [[nodiscard]] Endpoint endpoint(const Process& process, std::uint32_t queues);

 private:
  void publish(const Process& process);

  std::atomic<bool> is_ready_{false};
  int device_ = -1;
  std::array<beeline_hybrid*, 4> hybrids_{};
  std::mutex publishing_;
  void* memory_ = nullptr;           ///< of a world with GPUs: the entries that kernels read, [segments][ranks]
  std::vector<SegmentEntry> table_;  ///< the entries; kernels of a world without GPUs read these
  std::uint64_t published_ = 0;      ///< changes of the segment table that the entries have, plus 1; 0: none
};

/// The extension of the process that is running.
[[nodiscard]] Gpu& gpu(const Process& process);

}  // namespace beeline::gaspi
