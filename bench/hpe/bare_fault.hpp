// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a fault costs by itself.

#include <cstddef>
#include <cstdint>

namespace beeline::bench::hpe {

/// Protected pages, whose first access is a SIGSEGV that opens the page by mprotect, and does nothing else. One object
/// exists at a time, and no object of the library is used meanwhile.
class BareFaults {
 public:
  explicit BareFaults(std::size_t bytes);
  ~BareFaults();
  BareFaults(const BareFaults&) = delete;
  BareFaults& operator=(const BareFaults&) = delete;

  /// Takes access away from all pages.
  void protect() const;
  [[nodiscard]] const volatile std::uint32_t* words() const { return static_cast<const std::uint32_t*>(start_); }

 private:
  const std::size_t bytes_;
  void* start_;
};

}  // namespace beeline::bench::hpe
