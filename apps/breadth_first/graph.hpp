// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's part of the graph, in symmetric memory: compressed rows of its vertices in the order of their degrees,
/// without vertices that have no edges.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "beeline/host/collectives.hpp"
#include "beeline/host/launch.hpp"
#include "kronecker.hpp"
#include "order.hpp"

namespace breadth_first {

/// Threads of a block of every launch on a GPU.
inline constexpr unsigned block_threads = 256;

/// What kernels know of the graph. Vertices of this rank have numbers from 0 on (local), vertices of all ranks have
/// positions.
struct Rows {
  std::uint32_t ranks, rank, per_rank;
  std::uint32_t words;                ///< of a rank's part of a bitmap: per_rank / 32
  std::uint32_t of_grid, of_block;    ///< multiples of 32: a whole grid shares the row of a local vertex below
                                      ///< `of_grid`, a block those below `of_block`, since they are long
  const std::uint32_t* begins;        ///< [per_rank + 1]
  const std::uint32_t* neighbours;    ///< positions; those of the largest degrees first
  const std::uint32_t* first;         ///< [per_rank] the first neighbour
  const std::uint32_t* labels;        ///< [ranks, per_rank] vertices by position
  const std::uint32_t* word_degrees;  ///< [ranks, words] the degree of the first of 32 positions
  std::uint32_t* parents;             ///< [per_rank] symmetric; of a search: positions, then labels
  std::uint64_t inverse;              ///< 2^53 / per_rank + 1: see `owner_of`
  std::uint64_t entries;              ///< sum of the degrees of all vertices of all ranks

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t all_words() const { return ranks * words; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t position_of(std::uint32_t local) const {
    return rank * per_rank + local;
  }
  /// position / per_rank, without a division: exact, since position * per_rank < 2^53 and there are no more
  /// than 2^10 ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(std::uint32_t position) const {
    return static_cast<std::uint32_t>(position * inverse >> 53);
  }
};

/// Rows with more entries are shared by the threads of a block, or by those of a grid. Tests have lower limits.
struct RowLimits {
  std::uint32_t of_block = 1024, of_grid = 1 << 15;
};

/// The graph and the tree of the last search. Constructor and destructor are collective.
class Graph {
 public:
  /// Generates edges and makes rows of them. Throws no_resource if the rows of a rank are longer than `fit` expects.
  Graph(beeline::World& world, int scale, const RowLimits& limits = {});

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Kronecker& kronecker() const { return kronecker_; }
  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Rows& rows() const { return rows_; }
  [[nodiscard]] beeline::Collectives& collectives() { return *collectives_; }
  /// Edges of the input that this rank has generated, and their number.
  [[nodiscard]] const Edge* edges() const { return edges_->data(); }
  [[nodiscard]] std::uint64_t edge_count() const { return edge_count_; }
  /// Collective. Calls `work(first, count)` for pieces of the edges that each rank has generated, with a barrier after
  /// each: ranks that share cores then reach it within the deadline, however many edges there are. `count` is 0 where a
  /// rank has fewer edges than others. All pieces begin at the same numbers on all ranks.
  void in_pieces(const std::function<void(std::uint64_t first, std::uint64_t count)>& work);
  /// This rank's part of the tree: the parent's label of each local vertex, no_vertex if the search did not reach it.
  [[nodiscard]] const beeline::SymmetricArray<std::uint32_t>& parents() const { return *parents_; }

  /// Whether a vertex has an edge to another vertex.
  [[nodiscard]] bool has_edges(std::uint32_t vertex) const { return order_.positions[vertex] != no_vertex; }
  /// Replaces positions by labels in this rank's part of the tree.
  void name_parents();
  /// Collective. Edges between vertices of the tree; edges that occur twice count twice.
  [[nodiscard]] std::uint64_t edges_of_tree();

  [[nodiscard]] double generation_seconds() const { return generation_seconds_; }
  [[nodiscard]] double construction_seconds() const { return construction_seconds_; }

 private:
  [[nodiscard]] int pieces() const;
  void generate();
  void count_degrees();
  void order_vertices(const std::vector<std::uint32_t>& degrees);
  void upload_order();
  void make_rows();
  void fill_rows(std::uint32_t* ends);

  template <class T>
  [[nodiscard]] std::unique_ptr<beeline::SymmetricArray<T>> array(std::size_t count) {
    return std::make_unique<beeline::SymmetricArray<T>>(world_, count);
  }

  beeline::World& world_;
  const RowLimits limits_;
  Kronecker kronecker_;
  Order order_;
  Rows rows_{};
  std::uint64_t edge_count_ = 0;
  double generation_seconds_ = 0, construction_seconds_ = 0;
  std::unique_ptr<beeline::Collectives> collectives_;
  std::unique_ptr<beeline::SymmetricArray<Edge>> edges_;
  std::unique_ptr<beeline::SymmetricArray<std::uint64_t>> sum_;
  std::unique_ptr<beeline::SymmetricArray<std::uint32_t>> begins_, neighbours_, first_, labels_, word_degrees_,
      parents_;
};

/// Starts a kernel that does not wait, with about a thread of a GPU for each of `items`, on the default stream.
template <class Kernel, class... Args>
void launch_over(beeline::World& world, std::uint64_t items, const Kernel& kernel, Args... args) {
  constexpr std::uint64_t most_blocks = 2048;
  const std::uint64_t blocks = (items + block_threads - 1) / block_threads;
  const bool on_gpu = world.device().is_gpu();
  beeline::launch(world,
                  {.blocks = on_gpu ? static_cast<unsigned>(blocks < 1             ? 1
                                                            : blocks > most_blocks ? most_blocks
                                                                                   : blocks)
                                    : 1u,
                   .threads = block_threads},
                  kernel, args...);
}

}  // namespace breadth_first
