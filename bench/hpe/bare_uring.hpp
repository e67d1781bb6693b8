// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The peer of transfers of files: blocks by io_uring past the page cache, and nothing else.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace beeline::bench::hpe {

class BareUring {
 public:
  /// Why this build or machine has none; empty if it has.
  [[nodiscard]] static std::string lacking();
  ///   large_pages  of the buffers, if the system has them
  BareUring(std::size_t block_bytes, unsigned calls, bool large_pages);
  ~BareUring();
  BareUring(const BareUring&) = delete;
  BareUring& operator=(const BareUring&) = delete;

  /// Moves the first `bytes` bytes of a file, a multiple of 4 KiB.
  ///   descriptor  opened with O_DIRECT
  ///   memory      [bytes] aligned to 4 KiB; nullptr: `calls` buffers of a block each, so that the data are lost
  void move(int descriptor, bool reads, std::size_t bytes, std::byte* memory);

 private:
  struct Ring;
  const std::size_t block_bytes_;
  const unsigned calls_;
  const std::unique_ptr<Ring> ring_;
  std::byte* const buffers_;
};

}  // namespace beeline::bench::hpe
