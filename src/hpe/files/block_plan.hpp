// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a range of a file is divided into blocks.

#include <algorithm>
#include <cstddef>

#include "hpe/files/open_file.hpp"

namespace beeline::hpe::detail {

/// A part of a transfer.
struct FileBlock {
  std::size_t start = 0;  ///< bytes from the start of the range, in file and memory
  std::size_t bytes = 0;
  bool is_aligned = false;  ///< it may go past the page cache
};

/// Blocks of equal length whose ends in the file are aligned; before and behind them a shorter block each, for what the
/// alignment leaves.
class BlockPlan {
 public:
  ///   block_bytes  at least 1; a multiple of `alignment`, if that is not 0
  ///   alignment    of the file's blocks; 0: none may go past the cache
  BlockPlan(const FileRange& range, std::size_t block_bytes, std::size_t alignment)
      : bytes_(range.bytes), block_bytes_(block_bytes), is_aligned_(alignment != 0) {
    if (!is_aligned_) alignment = 1;
    head_ = std::min<std::size_t>((alignment - range.offset % alignment) % alignment, bytes_);
    body_ = (bytes_ - head_) / alignment * alignment;
  }

  [[nodiscard]] std::size_t count() const { return heads() + body_blocks() + tails(); }
  [[nodiscard]] FileBlock block(std::size_t number) const {
    if (number < heads()) return {0, head_, false};
    number -= heads();
    if (number == body_blocks()) return {head_ + body_, bytes_ - head_ - body_, false};
    const std::size_t start = number * block_bytes_;
    return {head_ + start, std::min(block_bytes_, body_ - start), is_aligned_};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t largest_block() const { return std::max({head_, std::min(block_bytes_, body_), tail()}); }

 private:
  [[nodiscard]] std::size_t heads() const { return head_ == 0 ? 0 : 1; }
  [[nodiscard]] std::size_t body_blocks() const { return (body_ + block_bytes_ - 1) / block_bytes_; }
  [[nodiscard]] std::size_t tail() const { return bytes_ - head_ - body_; }
  [[nodiscard]] std::size_t tails() const { return tail() == 0 ? 0 : 1; }

  const std::size_t bytes_, block_bytes_;
  const bool is_aligned_;
  std::size_t head_ = 0, body_ = 0;
};

}  // namespace beeline::hpe::detail
