// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Work of a GPU's streams that was recorded, and is repeated as a whole by one call of the driver.

#include <cstdint>
#include <functional>
#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Asynchronous, in the order of `stream`, which must be of the same GPU.
  virtual void run(Stream& stream) = 0;
  /// The value that a kernel passes to `cudaGraphLaunch` (as a cudaGraphExec_t), for work from `record_for_kernels`.
  [[nodiscard]] virtual std::uint64_t handle() const = 0;
};

/// Records the work that `work` puts on a GPU's stream, and on other streams that are ordered with it by events. None
/// of the work runs now. Throws what `work` throws, and unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<RecordedWork> record_work(Stream& stream, const std::function<void()>& work);
/// As `record_work`, for kernels of this GPU that are part of recorded work themselves: they may launch it, too. Waits
/// for the stream. Throws unavailable, with the reason, if the driver refuses such a graph.
[[nodiscard]] std::unique_ptr<RecordedWork> record_for_kernels(Stream& stream, const std::function<void()>& work);

}  // namespace beeline
