// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What was put on streams of a GPU, to be done again as a whole, for one call of the driver.

#include <cstdint>
#include <functional>
#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Asynchronous, in the order of a stream of the same GPU.
  virtual void run(Stream& stream) = 0;
  /// What a kernel passes to `cudaGraphLaunch` (as a cudaGraphExec_t): of what was recorded for that.
  [[nodiscard]] virtual std::uint64_t handle() const = 0;
};

/// Records what `work` puts on a GPU's stream, and on others that come after it and that it comes after by events. None
/// of it is done. Throws what `work` throws, and unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<RecordedWork> record_work(Stream& stream, const std::function<void()>& work);
/// The same, for kernels of this GPU that are part of recorded work themselves: they launch it, too. Waits for the
/// stream. Throws unavailable, with the reason, if the driver refuses that.
[[nodiscard]] std::unique_ptr<RecordedWork> record_for_kernels(Stream& stream, const std::function<void()>& work);

}  // namespace beeline
