// SPDX-License-Identifier: Apache-2.0
#include "order.hpp"

#include <algorithm>
#include <numeric>

namespace breadth_first {

Order order_of(const std::vector<std::uint32_t>& degrees, std::uint32_t ranks) {
  Order order;
  order.ranks = ranks;
  order.largest_degree = *std::ranges::max_element(degrees);
  order.entries = std::accumulate(degrees.begin(), degrees.end(), std::uint64_t{0});
  // A counting sort: `next[d]` is the number of vertices of a degree above d, then the number of the next vertex of
  // degree d in the order.
  std::vector<std::uint64_t> next(std::size_t{order.largest_degree} + 1);
  for (const std::uint32_t degree : degrees) ++next[degree];
  for (std::size_t degree = next.size(); degree-- > 0;) {
    const std::uint64_t here = next[degree];
    next[degree] = order.vertices;
    if (degree > 0) order.vertices += here;
  }
  order.per_rank = static_cast<std::uint32_t>(positions_of_rank(order.vertices, ranks));
  order.positions.assign(degrees.size(), no_vertex);
  order.labels.assign(std::size_t{ranks} * order.per_rank, no_vertex);
  for (std::size_t vertex = 0; vertex < degrees.size(); ++vertex) {
    if (degrees[vertex] == 0) continue;
    const std::uint64_t place = next[degrees[vertex]]++;
    const auto position = static_cast<std::uint32_t>(place % ranks * order.per_rank + place / ranks);
    order.positions[vertex] = position;
    order.labels[position] = static_cast<std::uint32_t>(vertex);
  }
  return order;
}

}  // namespace breadth_first
