// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory that payloads lie in on their way between the network and memory that the CPU leaves to the rank's device.

#include <cstddef>
#include <memory>
#include <vector>

#include "memory/host_buffer.hpp"

namespace beeline {

/// A piece of a command that is staged has so many bytes at most.
inline constexpr std::size_t staging_bytes = std::size_t{512} << 10;

class StagingBuffers;

/// Gives a buffer back to where it comes from.
struct GiveBack {
  StagingBuffers* to = nullptr;  ///< nullptr: it is an array of its own
  void operator()(std::byte* buffer) const;
};
using StagedBytes = std::unique_ptr<std::byte[], GiveBack>;

[[nodiscard]] inline StagedBytes make_staged(std::size_t bytes) {
  return StagedBytes(std::make_unique_for_overwrite<std::byte[]>(bytes).release());
}

/// So many buffers of `staging_bytes`, used by one thread. They outlive what was taken.
class StagingBuffers {
 public:
  static constexpr std::size_t count = 16;

  ///   is_pinned  GPUs copy to and from them
  /// Throws no_resource, unavailable.
  explicit StagingBuffers(bool is_pinned);

  [[nodiscard]] bool any() const { return !free_.empty(); }
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  /// A free buffer; if there is none, pageable memory: slower, but no thread waits for another thread's buffer.
  [[nodiscard]] StagedBytes take() {
    if (free_.empty()) return make_staged(staging_bytes);
    std::byte* const buffer = free_.back();
    free_.pop_back();
    return StagedBytes(buffer, GiveBack{this});
  }
  void give(std::byte* buffer) { free_.push_back(buffer); }

 private:
  const HostBuffer memory_;
  std::vector<std::byte*> free_;
};

inline void GiveBack::operator()(std::byte* buffer) const {
  if (to != nullptr)
    to->give(buffer);
  else
    delete[] buffer;
}

}  // namespace beeline
