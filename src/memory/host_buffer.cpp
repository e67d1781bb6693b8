// SPDX-License-Identifier: Apache-2.0
#include "memory/host_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>

#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline {

namespace {

/// Whole large pages and one more, for the alignment; shorter buffers would leave most of a large page unused.
std::size_t mapped_bytes_for(std::size_t bytes) {
  constexpr std::size_t page = HostBuffer::large_page_bytes;
  const bool is_long = bytes >= page / 2 && bytes <= SIZE_MAX / 2;  // the system refuses more
  return is_long ? (bytes + page - 1) / page * page + page : bytes;
}

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes, bool is_pinned, const char* purpose)
    : bytes_(bytes), mapped_bytes_(mapped_bytes_for(bytes)), is_pinned_(is_pinned) {
  mapping_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(mapping_ != MAP_FAILED, Status::no_resource, fmt::format("no {} bytes {}", bytes_, purpose));
  start_ = static_cast<std::byte*>(mapping_);
  if (mapped_bytes_ > bytes_) {
    start_ += -reinterpret_cast<std::uintptr_t>(start_) % large_page_bytes;
    ::madvise(start_, mapped_bytes_ - large_page_bytes, MADV_HUGEPAGE);  // some systems have none
  }
  try {
    if (is_pinned_) gpu_memory::register_host(start_, bytes_);
  } catch (...) {
    ::munmap(mapping_, mapped_bytes_);
    throw;
  }
}

HostBuffer::~HostBuffer() {
  if (is_pinned_) gpu_memory::unregister_host(start_);
  ::munmap(mapping_, mapped_bytes_);
}

}  // namespace beeline
