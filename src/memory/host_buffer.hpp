// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host memory that data pass through.

#include <cstddef>

namespace beeline {

/// Memory of this process, not of the heap; pinned where GPUs use it.
class HostBuffer {
 public:
  ///   is_pinned  every GPU of the process reaches it, at its own address
  ///   purpose    for errors: "no 4096 bytes " and this
  /// Throws no_resource; in worlds of GPUs also what pinning throws.
  HostBuffer(std::size_t bytes, bool is_pinned, const char* purpose);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  const std::size_t bytes_;
  const bool is_pinned_;
  std::byte* start_ = nullptr;
};

}  // namespace beeline
