// SPDX-License-Identifier: Apache-2.0
#include "kronecker.hpp"

#include <algorithm>

namespace breadth_first {

namespace {

constexpr std::uint64_t seeds[2] = {2, 3};

/// A number of the range [0, 1) from two of the sequence.
double fraction(Random& state) {
  // Both factors are those of the official program: 1 / (2^31 - 1), and its square.
  const double high = state.next() * .000000000465661287524579692;
  return high + state.next() * .0000000000000000002168404346990492787;
}

}  // namespace

Kronecker make_kronecker(int scale) {
  Kronecker graph{};
  graph.scale = scale;
  graph.first = seeded(seeds[0], seeds[1]);
  Random state = skip_of(64, 7).from(skip_of(128, 50).from(graph.first));
  for (std::uint64_t& word : graph.scramble) {
    const std::uint64_t high = state.next();
    word = high * 0xffffffffu + state.next();
  }
  graph.skip[0] = skip_of(64, 1);
  for (int k = 1; k < Kronecker::skips; ++k) graph.skip[k] = both(graph.skip[k - 1], graph.skip[k - 1]);
  return graph;
}

std::vector<std::uint32_t> choose_roots(const Kronecker& graph, std::size_t count,
                                        const std::function<bool(std::uint32_t)>& has_edges) {
  std::vector<std::uint32_t> roots;
  Random state = skip_of(128, 2).from(graph.first);
  const std::uint64_t vertices = graph.vertices();
  for (std::uint64_t tried = 0; roots.size() < count && tried < vertices; ++tried) {
    const double one = fraction(state), other = fraction(state);
    const auto root = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>((one + other) * static_cast<double>(vertices)) % vertices);
    if (std::ranges::find(roots, root) == roots.end() && has_edges(root)) roots.push_back(root);
  }
  return roots;
}

}  // namespace breadth_first
