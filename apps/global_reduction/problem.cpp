// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"
#include "common/reference.hpp"

namespace global_reduction {

std::vector<std::size_t> parse_counts(const std::string& text) {
  std::vector<std::size_t> counts;
  for (const std::string& item : apps::list_items(text)) {
    const std::optional<std::size_t> count = apps::parse_quantity(item);
    beeline::require(
        count && *count > 0, beeline::Status::invalid_argument,
        fmt::format("--values: '{}' is no number of values; valid: 1 to 1024G, like 1000, 4K or 16M", item));
    counts.push_back(*count);
  }
  beeline::require(!counts.empty(), beeline::Status::invalid_argument, "--values: no number is named");
  return counts;
}

double serial_sum(std::size_t count, int ranks, std::uint32_t set, int threads) {
  std::atomic<double> sum = 0;  // values are whole numbers: the sum is the same in any order
  apps::on_threads(threads, std::size_t{0}, count, [&](std::size_t first, std::size_t last) {
    double mine = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (std::size_t i = first; i < last; ++i)
        mine += static_cast<double>(initial_value(set, static_cast<std::uint32_t>(rank), i));
    sum += mine;
  });
  return sum;
}

void fit(beeline::Config& config, std::size_t count, const apps::Machine& machine) {
  constexpr std::size_t margin = std::size_t{8} << 20;  // for the sums of blocks and the collectives' channel
  apps::fit(config,
            {.problem = fmt::format("{} values on each of {} ranks", count, config.size),
             .symmetric_bytes = count * sizeof(float) + margin,
             .pinned_bytes = margin},
            machine);
}

}  // namespace global_reduction
