// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace ring_reduction {

namespace {

constexpr int bits_of_values = std::bit_width(unsigned{largest_value}) - 1;

/// Number of bits by which a sum over the ranks is longer than its terms.
int bits_of_sum(int ranks) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1))); }

}  // namespace

std::size_t parse_size(const std::string& text) {
  const std::optional<std::size_t> bytes = apps::parse_quantity(text);
  beeline::require(
      bytes && *bytes % sizeof(float) == 0, beeline::Status::invalid_argument,
      fmt::format("--size: '{}' is no size of a vector; valid: bytes like 1024, 4K, 64M or 1G, a multiple of "
                  "{}, at most 1024G",
                  text, sizeof(float)));
  return *bytes / sizeof(float);
}

std::vector<std::size_t> parse_sizes(const std::string& text) {
  std::vector<std::size_t> counts;
  for (const std::string& item : apps::list_items(text)) counts.push_back(parse_size(item));
  beeline::require(!counts.empty(), beeline::Status::invalid_argument, "--size: no size is named");
  return counts;
}

std::vector<Shape> parse_chunks(const std::string& text, const Shape& shape) {
  if (text.empty()) return {shape};
  std::vector<Shape> shapes;
  for (const std::string& item : apps::list_items(text)) {
    const std::optional<std::size_t> bytes = apps::parse_quantity(item);
    beeline::require(bytes && *bytes > 0, beeline::Status::invalid_argument,
                     fmt::format("--chunk: '{}' is no size of a chunk; valid: bytes like 64K or 4M", item));
    shapes.push_back(shape.with_chunks(*bytes));
  }
  return shapes;
}

int reductions_in_range(int ranks) {
  constexpr int bits_of_range = 126, most = 1'000'000;
  return ranks == 1 ? most : (bits_of_range - bits_of_values) / bits_of_sum(ranks);
}

int exact_reductions(int ranks) {
  constexpr int bits_of_mantissa = 24, most = 3;
  return ranks == 1 ? most : std::min(most, (bits_of_mantissa - bits_of_values) / bits_of_sum(ranks));
}

void fit(beeline::Config& config, std::size_t count, bool verify, const apps::Machine& machine) {
  const Vectors::Heaps heaps = Vectors::heaps(count, config.size, !machine.gpus.empty());
  // Rank 0's reference, and the results of all ranks, which are compared with it.
  const std::size_t reference = verify ? (static_cast<std::size_t>(config.size) + 1) * count * sizeof(float) : 0;
  apps::fit(config,
            {.problem = fmt::format("a vector of {} bytes on {} ranks", count * sizeof(float), config.size),
             .symmetric_bytes = heaps.symmetric_bytes,
             .pinned_bytes = heaps.pinned_bytes,
             .reference_bytes = reference},
            machine);
}

}  // namespace ring_reduction
