// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host memory for data in transit.

#include <cstddef>

namespace beeline {

/// Memory of this process outside the heaps; pinned if GPUs use it.
class HostBuffer {
 public:
  ///   is_pinned  whether every GPU of the process reaches it, at its own address
  ///   purpose    end of the error text, after "no 4096 bytes "
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
