// SPDX-License-Identifier: Apache-2.0
#include "network/staging_buffers.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline {

StagingBuffers::StagingBuffers(bool is_pinned) : is_pinned_(is_pinned) {
  constexpr std::size_t bytes = count * staging_bytes;
  void* const given = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(given != MAP_FAILED, Status::no_resource, fmt::format("no {} bytes to stage what crosses nodes", bytes));
  start_ = static_cast<std::byte*>(given);
  try {
    if (is_pinned_) gpu_memory::register_host(start_, bytes);
    for (std::size_t i = 0; i < count; ++i) free_.push_back(start_ + i * staging_bytes);
  } catch (...) {
    ::munmap(start_, bytes);
    throw;
  }
}

StagingBuffers::~StagingBuffers() {
  if (is_pinned_) gpu_memory::unregister_host(start_);
  ::munmap(start_, count * staging_bytes);
}

}  // namespace beeline
