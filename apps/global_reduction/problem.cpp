// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <thread>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace global_reduction {

std::vector<std::size_t> parse_counts(const std::string& text) {
  std::vector<std::size_t> counts;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const std::optional<std::size_t> count = apps::parse_quantity(item);
    beeline::require(count && *count > 0, beeline::Status::invalid_argument,
                     fmt::format("'{}' is no number of values: 1 to 1024G, like 1000, 4K or 16M", item));
    counts.push_back(*count);
  }
  beeline::require(!counts.empty(), beeline::Status::invalid_argument, "--values names no number of values");
  return counts;
}

double serial_sum(std::size_t count, int ranks, std::uint32_t set, int threads) {
  const auto shares = static_cast<std::size_t>(threads);
  std::vector<double> sums(shares, 0.0);
  const auto add_share = [&](std::size_t share) {
    const std::size_t last = share + 1 == shares ? count : count / shares * (share + 1);
    for (int rank = 0; rank < ranks; ++rank)
      for (std::size_t i = count / shares * share; i < last; ++i)
        sums[share] += static_cast<double>(initial_value(set, static_cast<std::uint32_t>(rank), i));
  };
  std::vector<std::thread> others;
  for (std::size_t share = 1; share < shares; ++share) others.emplace_back(add_share, share);
  add_share(0);
  for (std::thread& other : others) other.join();
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void fit(beeline::Config& config, std::size_t count, const apps::Machine& machine) {
  constexpr std::size_t margin = std::size_t{8} << 20;  // sums of blocks, the collectives' channel
  apps::fit(config,
            {.problem = fmt::format("{} values on each of {} ranks", count, config.size),
             .symmetric_bytes = count * sizeof(float) + margin,
             .pinned_bytes = margin},
            machine);
}

}  // namespace global_reduction
