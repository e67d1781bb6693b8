// SPDX-License-Identifier: Apache-2.0
#include "validate.hpp"

#include <array>

#include "beeline/device/impl/atomic_word.hpp"

namespace breadth_first {

namespace {

using Word32 = beeline::machine::DeviceAtomic<std::uint32_t>;
using Word64 = beeline::machine::DeviceAtomic<std::uint64_t>;

constexpr std::size_t edges_at = 5, changes_at = 6, counts = 7;

/// The tree of all ranks, as every rank holds it for the check.
struct WholeTree {
  std::uint32_t vertices, root;
  std::uint32_t* parents;  ///< [vertices] no_vertex: not in the tree
  std::uint32_t* levels;   ///< [vertices] no_vertex: none known
  std::uint32_t* joined;   ///< [vertices] 1: an edge leads to the parent
  std::uint64_t* counts;

  BEELINE_HOST_DEVICE void count(std::size_t which, std::uint64_t mine) const {
    if (mine != 0) Word64(counts[which]).fetch_add(mine, std::memory_order_relaxed);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t level(std::uint32_t vertex) const {
    return Word32(levels[vertex]).load(std::memory_order_relaxed);
  }
  BEELINE_HOST_DEVICE void join(std::uint32_t vertex) const {
    Word32(joined[vertex]).store(1, std::memory_order_relaxed);
  }
};

struct ClearTree {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, WholeTree tree) const {
    for (std::uint32_t i = grid.thread_rank(); i < tree.vertices; i += grid.size())
      tree.parents[i] = tree.levels[i] = no_vertex, tree.joined[i] = 0;
    for (std::uint32_t i = grid.thread_rank(); i < counts; i += grid.size()) tree.counts[i] = 0;
  }
};

struct Scatter {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, WholeTree tree,
                                      const std::uint32_t* gathered, const std::uint32_t* labels,
                                      std::uint32_t positions) const {
    for (std::uint32_t i = grid.thread_rank(); i < positions; i += grid.size())
      if (labels[i] != no_vertex) tree.parents[labels[i]] = gathered[i];
    if (grid.thread_rank() == 0) tree.levels[tree.root] = 0;
  }
};

/// Gives `level` to the vertices whose parents have the level before.
struct Descend {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, WholeTree tree,
                                      std::uint32_t level) const {
    std::uint64_t changes = 0;
    for (std::uint32_t i = grid.thread_rank(); i < tree.vertices; i += grid.size()) {
      const std::uint32_t parent = tree.parents[i];
      if (parent >= tree.vertices || tree.level(i) != no_vertex || tree.level(parent) != level - 1) continue;
      Word32(tree.levels[i]).store(level, std::memory_order_relaxed);
      ++changes;
    }
    tree.count(changes_at, changes);
  }
};

struct CheckEdges {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, WholeTree tree, const Edge* edges,
                                      std::uint64_t edge_count) const {
    std::uint64_t apart = 0, leaving = 0, inside = 0;
    for (std::uint64_t i = grid.thread_rank(); i < edge_count; i += grid.size()) {
      const auto [from, to] = edges[i];
      if (from == to) continue;
      const bool has_from = tree.parents[from] != no_vertex, has_to = tree.parents[to] != no_vertex;
      if (has_from != has_to) ++leaving;
      if (!has_from || !has_to) continue;
      ++inside;
      const std::uint32_t one = tree.level(from), other = tree.level(to);
      if ((one > other ? one - other : other - one) > 1) ++apart;
      if (tree.parents[from] == to) tree.join(from);
      if (tree.parents[to] == from) tree.join(to);
    }
    tree.count(2, apart), tree.count(3, leaving), tree.count(edges_at, inside);
  }
};

/// Checks the share of the vertices from `first` to `end`, with the edges of all ranks.
struct CheckVertices {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, WholeTree tree, std::uint32_t first,
                                      std::uint32_t end) const {
    std::uint64_t lost = 0, uneven = 0, apart = 0;
    for (std::uint32_t i = first + grid.thread_rank(); i < end; i += grid.size()) {
      const std::uint32_t parent = tree.parents[i], level = tree.level(i);
      if (i == tree.root && parent != i) ++lost;
      if (i == tree.root || parent == no_vertex) continue;
      if (level == no_vertex) ++lost;
      if (parent >= tree.vertices || tree.level(parent) + 1 != level) ++uneven;
      if (tree.joined[i] == 0) ++apart;
    }
    tree.count(0, lost), tree.count(1, uneven), tree.count(4, apart);
  }
};

}  // namespace

TreeCheck::TreeCheck(Graph& graph)
    : graph_(graph), gathered_(graph.world(), graph.order().labels.size()),
      tree_(graph.world(), graph.kronecker().vertices()), level_(graph.world(), tree_.count()),
      joined_(graph.world(), tree_.count()), counts_(graph.world(), counts) {}

Faults TreeCheck::check(std::uint32_t root) {
  beeline::World& world = graph_.world();
  const auto vertices = static_cast<std::uint32_t>(tree_.count());
  const WholeTree tree{vertices, root, tree_.data(), level_.data(), joined_.data(), counts_.data()};
  graph_.collectives().allgather(gathered_, graph_.parents());
  launch_over(world, vertices, ClearTree{}, tree);
  launch_over(world, gathered_.count(), Scatter{}, tree, gathered_.data(), graph_.rows().labels,
              static_cast<std::uint32_t>(gathered_.count()));
  std::uint64_t before = 0, now = 1;
  for (std::uint32_t level = 1; now != before; ++level) {
    before = level == 1 ? 0 : now;
    launch_over(world, vertices, Descend{}, tree, level);
    world.synchronize();
    world.copy(&now, counts_.data() + changes_at, sizeof now);
  }
  graph_.in_pieces([&](std::uint64_t first, std::uint64_t count) {
    launch_over(world, count, CheckEdges{}, tree, graph_.edges() + first, count);
    world.synchronize();
  });
  graph_.collectives().allreduce(joined_, beeline::Reduction::maximum);
  const auto share_of = [&](int rank) {
    return static_cast<std::uint32_t>(std::uint64_t{vertices} * static_cast<std::uint64_t>(rank) /
                                      static_cast<std::uint64_t>(world.size()));
  };
  launch_over(world, vertices, CheckVertices{}, tree, share_of(world.rank()), share_of(world.rank() + 1));
  world.synchronize();
  std::array<std::uint64_t, counts> all{};
  world.copy(all.data(), counts_.data(), sizeof all);
  Faults faults;
  for (std::size_t rule = 0; rule < faults.of_rule.size(); ++rule) faults.of_rule[rule] = world.allreduce(all[rule]);
  edges_ = world.allreduce(all[edges_at]);
  return faults;
}

std::vector<std::int32_t> TreeCheck::levels() const {
  std::vector<std::int32_t> copy(level_.count());
  graph_.world().copy(copy.data(), level_.data(), level_.bytes());
  return copy;
}

}  // namespace breadth_first
