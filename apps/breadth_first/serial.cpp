// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include "common/reference.hpp"

namespace breadth_first {

namespace {

std::vector<Edge> edges_of(const Kronecker& graph, int threads) {
  std::vector<Edge> edges(graph.edges());
  apps::on_threads(threads, std::size_t{0}, edges.size(), [&](std::size_t first, std::size_t last) {
    Random state = graph.state_of(first);
    for (std::size_t i = first; i < last; ++i) {
      edges[i] = graph.edge(state);
      state = graph.skip[0].from(state);
    }
  });
  return edges;
}

/// Calls `visit(vertex, neighbour)` for the ends of all edges in their order. Each thread has a range of the vertices.
template <class Visit>
void for_ends(const std::vector<Edge>& edges, std::uint64_t vertices, int threads, const Visit& visit) {
  apps::on_threads(threads, std::uint64_t{0}, vertices, [&](std::uint64_t first, std::uint64_t last) {
    const auto is_mine = [=](std::uint32_t vertex) { return vertex >= first && vertex < last; };
    for (const auto& [from, to] : edges) {
      if (from == to) continue;
      if (is_mine(from)) visit(from, to);
      if (is_mine(to)) visit(to, from);
    }
  });
}

}  // namespace

Serial::Serial(const Kronecker& graph, int threads) : begins_(graph.vertices() + 1) {
  const std::vector<Edge> edges = edges_of(graph, threads);
  for_ends(edges, graph.vertices(), threads, [&](std::uint32_t vertex, std::uint32_t) { ++begins_[vertex + 1]; });
  for (std::size_t vertex = 0; vertex < graph.vertices(); ++vertex) begins_[vertex + 1] += begins_[vertex];
  neighbours_.resize(begins_.back());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for_ends(edges, graph.vertices(), threads,
           [&](std::uint32_t vertex, std::uint32_t neighbour) { neighbours_[next[vertex]++] = neighbour; });
}

std::vector<std::int32_t> Serial::levels(std::uint32_t root) const {
  std::vector<std::int32_t> level(begins_.size() - 1, -1);
  std::vector<std::uint32_t> queue{root};
  level[root] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t vertex = queue[head];
    for (std::size_t i = begins_[vertex]; i < begins_[vertex + 1]; ++i) {
      const std::uint32_t neighbour = neighbours_[i];
      if (level[neighbour] >= 0) continue;
      level[neighbour] = level[vertex] + 1;
      queue.push_back(neighbour);
    }
  }
  return level;
}

}  // namespace breadth_first
