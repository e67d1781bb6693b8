// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/block_size.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>

#include "beeline/core/error.hpp"
#include "core/text_file.hpp"

namespace beeline::hpe::detail {

namespace {

constexpr std::size_t least_default_bytes = std::size_t{64} << 10;
constexpr std::size_t most_default_blocks = 8192;
constexpr std::size_t other_mappings = 4096;  ///< of the program, libraries and threads

std::atomic<std::size_t> reserved{0};

std::size_t most_mappings() {
  static const std::size_t most = [] {
    const std::string text = read_text("/proc/sys/vm/max_map_count");
    const std::size_t limit = text.empty() ? 65530 : std::strtoull(text.c_str(), nullptr, 10);
    return limit - std::min(limit, other_mappings);
  }();
  return most;
}

}  // namespace

std::size_t block_bytes_for(std::size_t bytes, std::size_t asked, bool may_need_mappings) {
  require(bytes > 0, Status::invalid_argument, "an object of 0 bytes");
  require(bytes <= SIZE_MAX / 4, Status::no_resource, fmt::format("no {} bytes of addresses for an object", bytes));
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (asked == 0) {
    std::size_t blocks = most_default_blocks;
    if (may_need_mappings) {
      const std::size_t free = most_mappings() - std::min(most_mappings(), reserved.load());
      blocks = std::clamp<std::size_t>(free / 4, 1, blocks);
    }
    return std::max(
        {std::bit_ceil((bytes + blocks - 1) / blocks), std::min(least_default_bytes, std::bit_ceil(bytes)), page});
  }
  require(std::has_single_bit(asked) && asked >= page, Status::invalid_argument,
          fmt::format("blocks of {} bytes: expected a power of two, at least {}", asked, page));
  require(asked <= SIZE_MAX / 4, Status::invalid_argument, fmt::format("blocks of {} bytes are too large", asked));
  return asked;
}

ReservedMappings::ReservedMappings(std::size_t blocks) : blocks_(blocks) {
  const std::size_t before = reserved.fetch_add(blocks);
  if (before + blocks <= most_mappings()) return;
  reserved.fetch_sub(blocks);
  throw Error(Status::no_resource,
              fmt::format("an object of {} blocks may need as many mappings, and other objects {}: together more than "
                          "the {} that vm.max_map_count leaves. Use larger blocks, or raise it (sysctl -w "
                          "vm.max_map_count=...)",
                          blocks, before, most_mappings()));
}

ReservedMappings::~ReservedMappings() { reserved.fetch_sub(blocks_); }

}  // namespace beeline::hpe::detail
