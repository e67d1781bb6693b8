// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/shadow_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "memory/gpu_memory.hpp"
#include "memory/memory_limits.hpp"

namespace beeline::hpe::detail {

namespace {

constexpr std::size_t large_page_bytes = std::size_t{2} << 20;

std::string limit_text(int resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "none";
  return fmt::format("{}", static_cast<std::size_t>(limit.rlim_cur));
}

[[noreturn]] void fail(const char* call, std::size_t bytes, int error) {
  std::string text = fmt::format("{} for an object of {} bytes: {}", call, bytes, std::strerror(error));
  if (error == ENOMEM)
    text += fmt::format(" (limit on this process's addresses: {}, ulimit -v; an object takes twice its bytes)",
                        limit_text(RLIMIT_AS));
  if (error == EMFILE) text += fmt::format(" (limit on open files: {}, ulimit -n)", limit_text(RLIMIT_NOFILE));
  const bool lacks = error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC;
  throw Error(lacks ? Status::no_resource : Status::internal, text);
}

}  // namespace

ShadowMemory::ShadowMemory(std::size_t bytes, std::byte* at, bool is_pinned, bool is_whole)
    : bytes_(bytes), is_placed_(at != nullptr) {
  check_file_size(bytes, "use smaller objects");
  file_ = FileDescriptor(::memfd_create("beeline-object", MFD_CLOEXEC));
  if (!file_) fail("memfd_create", bytes, errno);
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("ftruncate", bytes, errno);
  try {
    program_ = at != nullptr ? map(at) : map_aligned();
    shadow_ = map_aligned();
    if (is_whole && bytes_ >= large_page_bytes) use_large_pages();
    if (is_pinned) gpu_memory::register_host(shadow_, bytes_);
    is_pinned_ = is_pinned;
  } catch (...) {
    unmap();
    throw;
  }
}

ShadowMemory::~ShadowMemory() {
  if (is_pinned_) gpu_memory::unregister_host(shadow_);
  unmap();
}

std::byte* ShadowMemory::map(std::byte* at) const {
  void* const given =
      ::mmap(at, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), file_.get(), 0);
  if (given == MAP_FAILED) fail("mmap", bytes_, errno);
  return static_cast<std::byte*>(given);
}

/// Maps the file at an address that large pages need, a multiple of their size: reserves more addresses than the file
/// has bytes, and gives the rest back.
std::byte* ShadowMemory::map_aligned() const {
  if (bytes_ < large_page_bytes) return map(nullptr);
  const std::size_t reserved = bytes_ + large_page_bytes;
  void* const given = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (given == MAP_FAILED) fail("mmap", bytes_, errno);
  auto* const start = static_cast<std::byte*>(given);
  const std::size_t before =
      (large_page_bytes - reinterpret_cast<std::uintptr_t>(start) % large_page_bytes) % large_page_bytes;
  std::byte* mapped = nullptr;
  try {
    mapped = map(start + before);
  } catch (...) {
    ::munmap(start, reserved);
    throw;
  }
  if (before > 0) ::munmap(start, before);
  ::munmap(mapped + bytes_, reserved - before - bytes_);
  return mapped;
}

void ShadowMemory::use_large_pages() const {
  constexpr int collapse = 25;  // MADV_COLLAPSE, which glibc's header may lack; it needs a page in each large one
  const std::size_t whole = bytes_ / large_page_bytes * large_page_bytes;
  for (std::size_t at = 0; at < whole; at += large_page_bytes) shadow_[at] = std::byte{};
  if (::madvise(shadow_, whole, collapse) != 0)
    log(LogLevel::info, fmt::format("an object of {} bytes keeps small pages: {}", bytes_, std::strerror(errno)));
}

void ShadowMemory::unmap() noexcept {
  if (shadow_ != nullptr) ::munmap(shadow_, bytes_);
  if (program_ == nullptr) return;
  if (is_placed_)
    ::mmap(program_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  else
    ::munmap(program_, bytes_);
}

void ShadowMemory::populate() {
  int result = 0;
  do result = ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes_));
  while (result != 0 && errno == EINTR);
  if (result != 0) fail("fallocate", bytes_, errno);
}

bool ShadowMemory::make_private(std::size_t offset, std::size_t bytes) noexcept {
  return ::mmap(program_ + offset, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_.get(),
                static_cast<off_t>(offset)) != MAP_FAILED;
}

bool ShadowMemory::make_inaccessible(std::size_t offset, std::size_t bytes) noexcept {
  return ::mmap(program_ + offset, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
         MAP_FAILED;
}

}  // namespace beeline::hpe::detail
