// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host memory for data in transit.

#include <cstddef>

namespace beeline {

/// Memory of this process outside the heaps; pinned if GPUs use it. A MiB or more is in large pages where the system
/// has them: memory in few contiguous pieces is few descriptors of a storage device, whose queue holds few.
class HostBuffer {
 public:
  static constexpr std::size_t large_page_bytes = std::size_t{2} << 20;

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
  const std::size_t bytes_, mapped_bytes_;
  const bool is_pinned_;
  void* mapping_ = nullptr;  ///< as long as the buffer, or longer, for large pages
  std::byte* start_ = nullptr;
};

}  // namespace beeline
