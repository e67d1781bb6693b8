// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The rank that an engine serves in tests that have no world.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "beeline/transport/engine.hpp"
#include "memory/memory_users.hpp"
#include "tests/unit/lone_context.hpp"

namespace beeline {

/// A rank of a world of one, whose symmetric memory is a buffer.
class LoneClient : public LoneContext {
 protected:
  LoneClient() {
    context_.range = bytes_at(0);
    context_.slots = context_.places = 1;
    context_.heap_end = bytes;
    client_.context = context_;
    client_.address_of = [this](std::uint32_t, std::uint64_t offset) { return context_.range + offset; };
    client_.piece_at = [this](const void*) { return std::span<const std::byte>(context_.range, bytes); };
    client_.unmaps = &unmaps_;
    client_.memory_users = &users_;
    client_.is_host_memory = [](const void*) { return true; };
    client_.note_refusal = [this](const std::string& text) { last_refusal_ = text; };
    client_.fail = [this](const std::string& reason) {
      failure_ = reason;
      has_failed_ = true;
    };
  }
  [[nodiscard]] std::byte* bytes_at(std::size_t word) { return reinterpret_cast<std::byte*>(memory_.data() + word); }

  static constexpr std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(bytes / 8);
  std::atomic<std::uint64_t> unmaps_{0};
  MemoryUsers users_;
  EngineClient client_;
  std::string last_refusal_;  ///< once the engine has completed the command
  std::string failure_;       ///< once `has_failed_`
  std::atomic<bool> has_failed_{false};
};

}  // namespace beeline
