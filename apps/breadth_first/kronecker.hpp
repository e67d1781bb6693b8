// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The graphs of Graph500: Kronecker graphs with the initiator 0.57, 0.19, 0.19, 0.05, 16 edges for each of 2^scale
/// vertices, and scrambled vertex numbers. Seeds, random numbers and rounding are those of the official program
/// (version 3), so the edges are the same, in the same order. Source: Graph500 specification, section "Kernel 1";
/// facts about the program from its files generator/graph_generator.c, generator/utils.c and src/main.c.

#include <cstdint>
#include <functional>
#include <vector>

#include "random.hpp"

namespace breadth_first {

inline constexpr std::uint64_t edge_factor = 16;
inline constexpr int least_scale = 10, largest_scale = 26;

struct Edge {
  std::uint32_t from, to;
  bool operator==(const Edge&) const = default;
};

/// The generator of one graph.
struct Kronecker {
  /// Skips to edge 2^k from the first edge, for each k: each edge has 2^64 random numbers of its own.
  static constexpr int skips = 31;

  int scale;
  Random first;               ///< state of edge 0
  std::uint64_t scramble[2];  ///< chosen by the seeds
  Skip skip[skips];

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t vertices() const { return std::uint64_t{1} << scale; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t edges() const { return edge_factor << scale; }

  /// The state of edge `number`.
  [[nodiscard]] BEELINE_HOST_DEVICE Random state_of(std::uint64_t number) const {
    Random state = first;
    for (int k = 0; number >> k != 0; ++k)
      if ((number >> k & 1u) != 0) state = skip[k].from(state);
    return state;
  }

  /// The edge whose state is `state`.
  [[nodiscard]] BEELINE_HOST_DEVICE Edge edge(Random state) const {
    std::uint32_t from = 0, to = 0;
    for (int bit = scale - 1; bit >= 0; --bit) {
      unsigned square = square_of(state);
      if (from == to && square == 2) square = 1;  // keeps from <= to
      from |= (square >> 1) << bit, to |= (square & 1u) << bit;
    }
    return {scrambled(from), scrambled(to)};
  }

 private:
  /// A quadrant of the adjacency matrix, with the probabilities of the initiator.
  [[nodiscard]] BEELINE_HOST_DEVICE static unsigned square_of(Random& state) {
    constexpr std::uint32_t parts = 10000, b = 1900, a = 5700, biased = 0xffffffffu % parts;
    std::uint32_t number;
    do number = state.next();
    while (number < biased);
    number %= parts;
    return number < b ? 1 : number < 2 * b ? 2 : number < 2 * b + a ? 0 : 3;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t scrambled(std::uint64_t vertex) const {
    vertex = (vertex + scramble[0] + scramble[1]) * (scramble[0] | 0x4519840211493211u);
    vertex = mirrored(vertex) >> (64 - scale);
    vertex *= scramble[1] | 0x3050852102c843a5u;
    return static_cast<std::uint32_t>(mirrored(vertex) >> (64 - scale));
  }
  /// Bit i becomes bit 63 - i.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t mirrored(std::uint64_t bits) {
    bits = (bits >> 32) | (bits << 32);
    bits = (bits >> 16 & 0x0000ffff0000ffffu) | (bits & 0x0000ffff0000ffffu) << 16;
    bits = (bits >> 8 & 0x00ff00ff00ff00ffu) | (bits & 0x00ff00ff00ff00ffu) << 8;
    bits = (bits >> 4 & 0x0f0f0f0f0f0f0f0fu) | (bits & 0x0f0f0f0f0f0f0f0fu) << 4;
    bits = (bits >> 2 & 0x3333333333333333u) | (bits & 0x3333333333333333u) << 2;
    return (bits >> 1 & 0x5555555555555555u) | (bits & 0x5555555555555555u) << 1;
  }
};

/// The official graph of this scale: seeds 2 and 3.
[[nodiscard]] Kronecker make_kronecker(int scale);

/// The first `count` roots of the official program: vertices with edges, each once. Fewer if the program would not find
/// more.
///   has_edges  whether a vertex has an edge to another vertex
[[nodiscard]] std::vector<std::uint32_t> choose_roots(const Kronecker& graph, std::size_t count,
                                                      const std::function<bool(std::uint32_t)>& has_edges);

}  // namespace breadth_first
