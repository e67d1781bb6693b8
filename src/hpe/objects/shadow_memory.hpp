// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host memory with two mappings: the program's, which is protected, and the shadow mapping, which transfers use.

#include <cstddef>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::hpe::detail {

/// Pages, zero at first, that two mappings share. Source: seed 001, shadow mapping.
class ShadowMemory {
 public:
  ///   bytes     whole pages
  ///   at        where the program's mapping begins, in addresses that the caller has reserved; nullptr: anywhere
  ///   is_pinned whether GPUs copy to and from the shadow mapping
  ///   is_whole  whether the program's mapping is mostly opened and closed as a whole. It then has large pages, where
  ///             the kernel provides them (Linux 6.1): opening and closing all of it takes far less time, all memory is
  ///             allocated at once, and opening a part splits a page
  /// Throws no_resource, with the limit that applies.
  ShadowMemory(std::size_t bytes, std::byte* at, bool is_pinned, bool is_whole = false);
  ~ShadowMemory();
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;

  [[nodiscard]] std::byte* program() const { return program_; }
  [[nodiscard]] std::byte* shadow() const { return shadow_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Allocates all pages now, so that none is missing at a fault. Throws no_resource.
  void populate();

  /// In a forked process: replaces a part of the program's mapping by a private copy, so that the process's stores do
  /// not reach the parent. Makes system calls only. Returns false if the kernel refuses.
  [[nodiscard]] bool make_private(std::size_t offset, std::size_t bytes) noexcept;
  /// In a forked process: takes access to a part away.
  [[nodiscard]] bool make_inaccessible(std::size_t offset, std::size_t bytes) noexcept;

 private:
  [[nodiscard]] std::byte* map(std::byte* at) const;
  [[nodiscard]] std::byte* map_aligned() const;
  void use_large_pages() const;
  void unmap() noexcept;

  const std::size_t bytes_;
  const bool is_placed_;  ///< the addresses of the program's mapping stay reserved
  bool is_pinned_ = false;
  FileDescriptor file_;
  std::byte* program_ = nullptr;
  std::byte* shadow_ = nullptr;
};

}  // namespace beeline::hpe::detail
