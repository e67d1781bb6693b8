// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where symmetric memory is: an engine asks for each command.

#include <cstddef>
#include <cstdint>
#include <span>

#include "beeline/transport/engine.hpp"

namespace beeline {

/// Remembers the piece of memory that it has found last. One thread uses it.
class MappedMemory {
 public:
  explicit MappedMemory(const EngineClient& client) : client_(client) {}

  /// Whether all bytes from `address` on lie in one piece of symmetric memory.
  [[nodiscard]] bool holds(const void* address, std::size_t bytes) {
    const std::uint64_t unmaps = client_.unmaps->load(std::memory_order_acquire);
    if (unmaps == unmaps_ && is_in_piece(address, bytes)) return true;
    piece_ = client_.piece_at(address);
    unmaps_ = unmaps;
    return is_in_piece(address, bytes);
  }

 private:
  [[nodiscard]] bool is_in_piece(const void* address, std::size_t bytes) const {
    const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - piece_.data());
    return offset < piece_.size() && bytes <= piece_.size() - offset;
  }

  const EngineClient& client_;
  std::span<const std::byte> piece_;
  std::uint64_t unmaps_ = 0;
};

}  // namespace beeline
