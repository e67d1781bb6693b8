// SPDX-License-Identifier: Apache-2.0
#include "memory/host_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline {

HostBuffer::HostBuffer(std::size_t bytes, bool is_pinned, const char* purpose) : bytes_(bytes), is_pinned_(is_pinned) {
  void* const given = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(given != MAP_FAILED, Status::no_resource, fmt::format("no {} bytes {}", bytes_, purpose));
  start_ = static_cast<std::byte*>(given);
  try {
    if (is_pinned_) gpu_memory::register_host(start_, bytes_);
  } catch (...) {
    ::munmap(start_, bytes_);
    throw;
  }
}

HostBuffer::~HostBuffer() {
  if (is_pinned_) gpu_memory::unregister_host(start_);
  ::munmap(start_, bytes_);
}

}  // namespace beeline
