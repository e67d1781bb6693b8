// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "method.hpp"
#include "serial.hpp"
#include "validate.hpp"

namespace breadth_first {

namespace {

/// Entries of rows for which a rank has room. Ranks take vertices of the sorted order in turn, so their entries differ
/// by less than the largest degree, which is about 2 * 16 * (2 * 0.76)^scale; the double is taken.
std::uint64_t most_entries(int scale, int ranks) {
  return 2 * edges_of_rank(edge_factor << scale, static_cast<std::uint64_t>(ranks)) +
         static_cast<std::uint64_t>(64 * std::pow(1.52, scale));
}

}  // namespace

void require_room(int scale, int ranks, std::uint64_t entries) {
  const std::uint64_t room = most_entries(scale, ranks);
  beeline::require(entries <= room, beeline::Status::no_resource,
                   fmt::format("a rank's rows have {} entries, and there is room for {}", entries, room));
}

void fit(beeline::Config& config, int scale, bool verify, const apps::Machine& machine) {
  const std::uint64_t vertices = std::uint64_t{1} << scale, ranks = static_cast<std::uint64_t>(config.size);
  const std::uint64_t per_rank = positions_of_rank(vertices, ranks);
  const std::uint64_t edges = (edges_of_rank(edge_factor << scale, ranks) + piece_edges) * sizeof(Edge);
  const std::uint64_t rows = 4 * (most_entries(scale, config.size) + 4 * per_rank + ranks * per_rank);
  const std::uint64_t construction = 4 * (2 * vertices + per_rank);
  const bool on_gpus = !machine.gpus.empty();
  const std::uint64_t margin = std::uint64_t{on_gpus ? 256u : 48u} << 20;  // collectives, small arrays
  apps::fit(config,
            {.problem = fmt::format("a graph of scale {} on {} ranks", scale, config.size),
             .symmetric_bytes = edges + rows + margin +
                                std::max<std::uint64_t>(construction, method_bytes(per_rank, ranks, on_gpus) +
                                                                          TreeCheck::bytes(vertices, ranks * per_rank)),
             .pinned_bytes = std::size_t{8} << 20,
             .reference_bytes = verify ? Serial::bytes(scale) : 0},
            machine);
}

}  // namespace breadth_first
