// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Buffers for payloads between the network and memory that only the rank's device copies.

#include <cstddef>
#include <memory>
#include <vector>

#include "memory/host_buffer.hpp"
#include "memory/memory_users.hpp"

namespace beeline {

/// Largest piece of a command that is staged.
inline constexpr std::size_t staging_bytes = std::size_t{512} << 10;

class StagingBuffers;

/// Returns a buffer to its pool, or releases memory that is held.
struct GiveBack {
  StagingBuffers* to = nullptr;  ///< nullptr: the buffer is an array of its own
  MemoryUsers* held = nullptr;   ///< nullptr: the bytes are a buffer
  void operator()(std::byte* buffer) const;
};
using StagedBytes = std::unique_ptr<std::byte[], GiveBack>;

/// Bytes of memory that `users.try_hold` has held: nothing is unmapped until their owner ends.
[[nodiscard]] inline StagedBytes held_bytes(std::byte* bytes, MemoryUsers& users) {
  return StagedBytes(bytes, GiveBack{nullptr, &users});
}

[[nodiscard]] inline StagedBytes make_staged(std::size_t bytes) {
  return StagedBytes(std::make_unique_for_overwrite<std::byte[]>(bytes).release());
}

/// A pool of buffers of `staging_bytes` each; one thread uses it. It must outlive the buffers taken from it.
class StagingBuffers {
 public:
  static constexpr std::size_t count = 16;

  ///   is_pinned  whether GPUs copy to and from the buffers
  /// Throws no_resource, unavailable.
  explicit StagingBuffers(bool is_pinned);

  [[nodiscard]] bool any() const { return !free_.empty(); }
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  /// A free buffer; if there is none, pageable memory: slower, but no thread waits for another thread's buffer.
  [[nodiscard]] StagedBytes take() {
    if (free_.empty()) return make_staged(staging_bytes);
    std::byte* const buffer = free_.back();
    free_.pop_back();
    return StagedBytes(buffer, GiveBack{this, nullptr});
  }
  void give(std::byte* buffer) { free_.push_back(buffer); }

 private:
  const HostBuffer memory_;
  std::vector<std::byte*> free_;
};

inline void GiveBack::operator()(std::byte* buffer) const {
  if (held != nullptr)
    held->release();
  else if (to != nullptr)
    to->give(buffer);
  else
    delete[] buffer;
}

}  // namespace beeline
