// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"
#include "method.hpp"

namespace random_access {

namespace {

using beeline::require;
using beeline::Status;

constexpr std::size_t fewest_words = 1024;

/// Refuses a table that takes more than half of the memory of the ranks' devices. Where several ranks share a GPU,
/// `apps::fit` counts their memory together.
void require_half(const Layout& layout, const apps::Machine& machine) {
  const auto share = static_cast<std::size_t>(layout.range(0).count) * sizeof(std::uint64_t);
  std::size_t room = machine.memory_bytes / 2 / layout.ranks;
  for (const beeline::Device& gpu : machine.gpus)
    room = &gpu == machine.gpus.data() ? gpu.memory_bytes / 2 : std::min(room, gpu.memory_bytes / 2);
  require(
      share <= room, Status::no_resource,
      fmt::format("a table of 2^{} words on {} ranks takes {} bytes a rank, and the limit is {}, half of the memory "
                  "that a rank has: choose a smaller table, or more {}",
                  layout.bits, layout.ranks, share, room, machine.gpus.empty() ? "machines" : "GPUs"));
}

}  // namespace

Layout layout_of(unsigned bits, int ranks) {
  const auto unsigned_ranks = static_cast<std::uint32_t>(ranks);
  return {bits, unsigned_ranks, std::has_single_bit(unsigned_ranks) ? std::countr_zero(unsigned_ranks) : -1};
}

std::vector<Layout> parse_words(const std::string& text, int ranks, bool weak) {
  std::vector<Layout> tables;
  for (const std::string& item : apps::list_items(text)) {
    const std::optional<std::size_t> words = apps::parse_quantity(item);
    require(words && *words >= fewest_words && std::has_single_bit(*words), Status::invalid_argument,
            fmt::format("--words: '{}' is no size of a table; valid: powers of two from 1K to 1024G, like 64K or 16M",
                        item));
    const std::size_t all = weak ? std::bit_floor(*words * static_cast<std::size_t>(ranks)) : *words;
    require(all <= std::size_t{1} << 40, Status::invalid_argument,
            fmt::format("--words: {} for each of {} ranks are more than 1024G words", item, ranks));
    tables.push_back(layout_of(static_cast<unsigned>(std::countr_zero(all)), ranks));
  }
  require(!tables.empty(), Status::invalid_argument, "--words: no size is named");
  return tables;
}

std::uint64_t updates_of(const Run& run, int ranks) {
  std::uint64_t sum = 0;
  const auto all = static_cast<std::uint32_t>(ranks);
  for (std::uint32_t rank = 0; rank < all; ++rank) sum += run.of(rank, all).count;
  return sum;
}

void fit(beeline::Config& config, const std::vector<Layout>& tables, const apps::Machine& machine) {
  constexpr std::size_t margin = std::size_t{8} << 20;  // counters, signals
  const std::size_t buffers = buffer_bytes(config.size, !machine.gpus.empty());
  for (const Layout& layout : tables) {
    require_half(layout, machine);
    const std::size_t words = static_cast<std::size_t>(layout.range(0).count) * sizeof(std::uint64_t);
    apps::fit(config,
              {.problem = fmt::format("a table of 2^{} words on {} ranks", layout.bits, layout.ranks),
               .symmetric_bytes = words + buffers + margin,
               .pinned_bytes = pinned_bytes(config.size) + margin},
              machine);
  }
}

}  // namespace random_access
