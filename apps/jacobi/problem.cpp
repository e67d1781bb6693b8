// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"
#include "domain.hpp"

namespace jacobi {

namespace {

using beeline::require;
using beeline::Status;

std::size_t parse_extent(const std::string& text, const std::string& item) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  const std::optional<std::size_t> extent = apps::parse_quantity(text);
  require(extent && *extent > 0 && *extent <= largest, Status::invalid_argument,
          fmt::format(
              "--size: '{}' is no size; valid: N (N x N points for each rank) or COLUMNSxROWS, of 1 to 1M points each",
              item));
  return *extent;
}

}  // namespace

std::vector<Size> parse_sizes(const std::string& text, int ranks) {
  std::vector<Size> sizes;
  for (const std::string& item : apps::list_items(text)) {
    const std::size_t cross = item.find('x');
    const std::size_t columns = parse_extent(item.substr(0, cross), item);
    sizes.push_back({columns, cross == std::string::npos ? columns * static_cast<std::size_t>(ranks)
                                                         : parse_extent(item.substr(cross + 1), item)});
  }
  require(!sizes.empty(), Status::invalid_argument, "--size: no grid is named");
  return sizes;
}

Slab slab_of(const Size& size, int ranks, int rank) {
  const auto parts = static_cast<std::size_t>(ranks), part = static_cast<std::size_t>(rank);
  require(parts <= size.rows, Status::invalid_argument,
          fmt::format("--size: {} ranks for {} rows (grid {}x{}): each rank needs at least one", ranks, size.rows,
                      size.columns, size.rows));
  const std::size_t fewest = size.rows / parts, larger = size.rows % parts;
  return {1 + part * fewest + std::min(part, larger), fewest + (part < larger ? 1 : 0)};
}

void fit(beeline::Config& config, const std::vector<Size>& sizes, bool verify, const apps::Machine& machine) {
  constexpr std::size_t margin = std::size_t{8} << 20;  // signals, the all-reduce's channel
  constexpr std::size_t reference_fields = 4;           // two of the reference, the result, and a part of the result
  for (const Size& size : sizes) {
    static_cast<void>(slab_of(size, config.size, 0));
    apps::fit(
        config,
        {.problem = fmt::format("a grid of {}x{} on {} ranks", size.columns, size.rows, config.size),
         .symmetric_bytes = Domain::field_bytes(size, config.size) + Domain::task_bytes(size, config.size) + margin,
         .pinned_bytes = margin,
         .reference_bytes = verify ? reference_fields * size.stored() * sizeof(float) : 0},
        machine);
  }
}

}  // namespace jacobi
