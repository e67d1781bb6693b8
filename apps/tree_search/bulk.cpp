// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method bulk: level by level, in one kernel for all levels. All ranks expand their nodes of a level, give each node's
/// children to the rank that the node's hash selects, and enter a barrier before the next level.

#include <algorithm>

#include "beeline/device/barrier.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "counting.hpp"
#include "method.hpp"

namespace tree_search {

namespace {

/// Largest number of nodes of a level on a rank.
constexpr std::uint64_t most_of_level = std::uint64_t{1} << 20;
constexpr unsigned block_threads = 256, most_blocks = 64;

/// Symmetric memory. Levels rotate: one is read, the next is written, and the counter of the third is set to zero.
struct Levels {
  Node* nodes;            ///< [2, most_of_level]
  std::uint64_t* widths;  ///< [3] nodes given to this rank; if more than `most_of_level`, the search is given up
};

template <class Grid>
class LevelSearch {
 public:
  BEELINE_HOST_DEVICE LevelSearch(Grid& grid, const beeline::Context& ctx, const Tree& tree, const Levels& levels)
      : grid_(grid), ctx_(ctx), tree_(tree), levels_(levels) {}

  BEELINE_HOST_DEVICE void run(Counts& counts) {
    for (std::uint64_t level = 0;; ++level) {
      const std::uint64_t width = load(levels_.widths[level % 3]);
      for (std::uint64_t i = grid_.thread_rank(); i < width; i += grid_.size()) expand(level, i);
      if (!meet()) break;
      // No rank writes the counter of the level that has been read before the next barrier.
      const std::uint64_t state = state_of(level + 1);
      if (state != goes_on) break;
      if (grid_.thread_rank() == 0) store(levels_.widths[level % 3], 0);
    }
    tally_.give(counts);
  }

 private:
  static constexpr std::uint64_t goes_on = 1;
  using Word = beeline::detail::SystemAtomic<std::uint64_t>;

  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t load(std::uint64_t& word) {
    return Word(word).load(std::memory_order_relaxed);
  }
  BEELINE_HOST_DEVICE static void store(std::uint64_t& word, std::uint64_t value) {
    Word(word).store(value, std::memory_order_relaxed);
  }

  BEELINE_HOST_DEVICE void expand(std::uint64_t level, std::uint64_t index) {
    const Node node = levels_.nodes[level % 2 * most_of_level + index];
    const std::uint32_t children = tree_.children_of(node);
    tally_.add(node, children);
    if (children == 0) return;
    // The root's children, whose subtrees differ most in size, are distributed over all ranks.
    const std::uint32_t parts = node.depth == 0 ? ctx_.size : 1;
    for (std::uint32_t part = 0; part < parts; ++part)
      give(level, node, static_cast<std::uint32_t>((node.hash + part) % ctx_.size), children * part / parts,
           children * (part + 1) / parts);
  }
  BEELINE_HOST_DEVICE void give(std::uint64_t level, const Node& node, std::uint32_t rank, std::uint32_t first,
                                std::uint32_t end) {
    const std::uint64_t at =
        Word(*ctx_.at(&levels_.widths[(level + 1) % 3], rank)).fetch_add(end - first, std::memory_order_relaxed);
    if (at + (end - first) > most_of_level) return;  // all ranks see the width, and give up
    Node* const to = ctx_.at(levels_.nodes, rank) + (level + 1) % 2 * most_of_level + at;
    for (std::uint32_t i = first; i < end; ++i) to[i - first] = Tree::child(node, i);
  }

  /// A barrier of all threads of all ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE bool meet() {
    if (grid_.sync(ctx_) != beeline::Status::ok) return false;
    if (grid_.block_rank() == 0 && beeline::barrier(grid_.block(), ctx_) != beeline::Status::ok) return false;
    return grid_.sync(ctx_) == beeline::Status::ok;
  }
  /// Whether a level has nodes, and whether they fit on each rank; the result is the same on all ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t state_of(std::uint64_t level) {
    std::uint64_t widest = 0;
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank) {
      const std::uint64_t width = load(*ctx_.at(&levels_.widths[level % 3], rank));
      widest = width > widest ? width : widest;
    }
    return widest == 0 ? 0 : widest > most_of_level ? 2 : goes_on;
  }

  Grid& grid_;
  const beeline::Context& ctx_;
  const Tree tree_;
  const Levels levels_;
  Tally tally_;
};

struct SearchLevels {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Tree tree, Levels levels,
                                      Counts* counts) const {
    LevelSearch<Grid>(grid, ctx, tree, levels).run(*counts);
  }
};

class Bulk final : public Method {
 public:
  explicit Bulk(Problem& problem)
      : Method(problem), nodes_(world(), 2 * most_of_level), widths_(world(), 3),
        blocks_(world().allreduce(std::min(most_blocks, beeline::resident_blocks<SearchLevels, Tree, Levels, Counts*>(
                                                            world(), block_threads)),
                                  beeline::Reduction::minimum)) {}

  void search() override {
    const std::uint64_t widths[3] = {world().rank() == 0 ? 1u : 0u, 0, 0};
    const Node root = problem().tree().root();
    world().copy(nodes_.data(), &root, sizeof root);
    world().copy(widths_.data(), widths, sizeof widths);
    world().barrier();
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, SearchLevels{},
                    problem().tree(), Levels{nodes_.data(), widths_.data()}, problem().counts());
    world().synchronize();
    std::uint64_t left[3];
    world().copy(left, widths_.data(), sizeof left);
    beeline::require(world().allreduce(*std::ranges::max_element(left), beeline::Reduction::maximum) <= most_of_level,
                     beeline::Status::no_resource, "a level of the tree has more nodes than a rank has room for");
  }

 private:
  beeline::SymmetricArray<Node> nodes_;
  beeline::SymmetricArray<std::uint64_t> widths_;
  unsigned blocks_;
};

}  // namespace

std::size_t bulk_heap_bytes() { return 2 * most_of_level * sizeof(Node) + (std::size_t{1} << 16); }

MethodInfo bulk() {
  return MethodInfo::of<Bulk>(
      {"bulk", "level by level, in one kernel: all ranks meet in a barrier before each level", "device/peer/signal"});
}

}  // namespace tree_search
