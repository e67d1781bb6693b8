// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Pages of memory with a chosen protection, for tests.

#include <sys/mman.h>

#include <cstddef>

namespace beeline_test {

/// Unmapped at the end, if it has not been before.
class Mapping {
 public:
  ///   protection  as of mmap
  explicit Mapping(std::size_t bytes, int protection = PROT_READ | PROT_WRITE)
      : bytes_(bytes), start_(::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() { ::munmap(start_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] std::byte* start() const { return static_cast<std::byte*>(start_); }
  void protect(int protection) const { ::mprotect(start_, bytes_, protection); }

 private:
  const std::size_t bytes_;
  void* const start_;
};

}  // namespace beeline_test
