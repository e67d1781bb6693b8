// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"
#include "domain.hpp"

namespace spin_glass {

namespace {

using beeline::require;
using beeline::Status;

constexpr std::uint32_t fewest_sites = 2, most_sites = 4096;  // along an axis

std::uint32_t parse_extent(const std::string& text, const std::string& item) {
  std::uint32_t extent = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, extent);
  require(error == std::errc{} && after == end && extent >= fewest_sites && extent <= most_sites && extent % 2 == 0,
          Status::invalid_argument,
          fmt::format("--size: '{}' is no size; valid: N or XxYxZ, even numbers of sites from {} to {}", item,
                      fewest_sites, most_sites));
  return extent;
}

}  // namespace

Couplings parse_couplings(const std::string& text) {
  if (text == "plus_minus") return Couplings::plus_minus;
  require(text == "gaussian", Status::invalid_argument,
          fmt::format("--couplings: '{}'; valid: plus_minus, gaussian", text));
  return Couplings::gaussian;
}

std::vector<Size> parse_sizes(const std::string& text, int ranks, bool weak) {
  std::vector<Size> sizes;
  for (const std::string& item : apps::list_items(text)) {
    std::array<std::uint32_t, 3> extents{};
    const std::size_t first = item.find('x'), second = item.find('x', first + 1);
    if (first == std::string::npos)
      extents.fill(parse_extent(item, item));
    else
      extents = {parse_extent(item.substr(0, first), item),
                 parse_extent(item.substr(first + 1, second == std::string::npos ? 0 : second - first - 1), item),
                 parse_extent(second == std::string::npos ? "" : item.substr(second + 1), item)};
    sizes.push_back({extents[0], extents[1], weak ? extents[2] * static_cast<std::uint32_t>(ranks) : extents[2]});
  }
  require(!sizes.empty(), Status::invalid_argument, "--size: no lattice is named");
  return sizes;
}

Slab slab_of(const Size& size, int ranks, int rank) {
  const auto parts = static_cast<std::uint32_t>(ranks), part = static_cast<std::uint32_t>(rank);
  require(parts <= size.z, Status::invalid_argument,
          fmt::format("--size: {} ranks for {} planes (lattice {}x{}x{}): each rank needs at least one", ranks, size.z,
                      size.x, size.y, size.z));
  const std::uint32_t planes = size.z / parts, larger = size.z % parts;
  return {part * planes + std::min(part, larger), planes + (part < larger ? 1 : 0)};
}

void fit(beeline::Config& config, const std::vector<Size>& sizes, bool verify, const apps::Machine& machine) {
  constexpr std::size_t margin = std::size_t{8} << 20;  // signals, sums
  constexpr std::size_t reference_bytes = 36;           // for a site: its spin twice, three couplings
  for (const Size& size : sizes) {
    const std::uint64_t own = std::uint64_t{size.x} * size.y * slab_of(size, config.size, 0).planes;
    require(
        own < std::uint64_t{1} << 31, Status::invalid_argument,
        fmt::format("--size: {} sites a rank; the limit is 2147483647: take more ranks, or a smaller lattice", own));
    apps::fit(config,
              {.problem = fmt::format("a lattice of {}x{}x{} on {} ranks", size.x, size.y, size.z, config.size),
               .symmetric_bytes = Domain::bytes(size, config.size) + margin,
               .pinned_bytes = Domain::pinned_bytes(size) + margin,
               .reference_bytes = verify ? reference_bytes * size.sites() : 0},
              machine);
  }
  config.heap_bytes = std::max(config.heap_bytes, apps::copy_heap_bytes);  // not before: host ranks touch few of them
}

}  // namespace spin_glass
