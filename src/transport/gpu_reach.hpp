// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a host rank reaches GPU memory, which CPU threads cannot load or store.

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// A stream of any GPU that this process sees, for copies and stream writes. Thread-safe.
class GpuReach {
 public:
  /// `stream` is nullptr if the process sees no GPU of the world: then operations that need a GPU are refused.
  GpuReach(std::function<bool(const void*)> is_gpu_memory, std::unique_ptr<Stream> stream)
      : is_gpu_memory_(std::move(is_gpu_memory)), stream_(std::move(stream)) {}

  /// Whether CPU threads cannot reach one of `addresses`. Throws unreachable if so, and there is no stream.
  [[nodiscard]] bool needed(std::initializer_list<const void*> addresses) const {
    for (const void* address : addresses) {
      if (!is_gpu_memory_(address)) continue;
      require(
          stream_ != nullptr, Status::unreachable,
          "this host rank sees no GPU of the world, so it cannot reach GPU memory: let a GPU rank copy, or name this "
          "rank's device in a list (cuda:0,cpu) that leaves its process the GPUs");
      return true;
    }
    return false;
  }
  [[nodiscard]] Stream& stream() const { return *stream_; }

 private:
  std::function<bool(const void*)> is_gpu_memory_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace beeline
