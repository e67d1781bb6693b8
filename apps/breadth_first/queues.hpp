// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The search with queues, for the methods that send vertices to their owners. A rank looks at the neighbours of all
/// vertices in a level's queue. It visits its own at once, and passes each other one to an `Outlet`, once in a search.

#include <memory>

#include "beeline/device/impl/atomic_word.hpp"
#include "method.hpp"

namespace breadth_first {

/// A vertex that was found, as it travels to its owner.
struct Visit {
  std::uint32_t local;   ///< the vertex, by its number at its owner
  std::uint32_t parent;  ///< position
};

using DeviceWord = beeline::machine::DeviceAtomic<std::uint32_t>;

/// Sets a bit of a bitmap. Returns whether this call did so.
///   is_alone  whether no other thread sets bits of this bitmap
[[nodiscard]] BEELINE_HOST_DEVICE inline bool claim(std::uint32_t* bits, std::uint32_t index, bool is_alone = false) {
  const DeviceWord word(bits[index / 32]);
  const std::uint32_t bit = 1u << index % 32, before = word.load(std::memory_order_relaxed);
  if ((before & bit) != 0) return false;
  if (!is_alone) return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  word.store(before | bit, std::memory_order_relaxed);
  return true;
}

/// Local vertices that a thread has found, and which are not in the next queue yet. A CPU thread appends many at once,
/// since the queue's length may be in the cache of another core.
struct Found {
  static constexpr std::uint32_t most = BEELINE_ON_GPU ? 1 : 64;
  std::uint32_t count = 0;
  std::uint32_t vertices[most];
};

/// The state of a search on this rank.
struct Queues {
  std::uint32_t* visited;  ///< [words] bits of local vertices
  std::uint32_t* looked;   ///< [ranks, words] bits of positions that this rank's rows have led to
  std::uint32_t* queue;    ///< [2, per_rank] local vertices of a level, and of the next
  std::uint32_t* lengths;  ///< [3] of the queues: of the level, of the next, and 0

  /// Each thread that visits calls `append` before the end of the level.
  BEELINE_HOST_DEVICE void visit(const Rows& rows, std::uint32_t level, const Visit& visit, Found& found) const {
    if (!claim(visited, visit.local)) return;
    rows.parents[visit.local] = visit.parent;
    found.vertices[found.count++] = visit.local;
    if (found.count == Found::most) append(rows, level, found);
  }
  /// Puts what a thread has found into the next queue.
  BEELINE_HOST_DEVICE void append(const Rows& rows, std::uint32_t level, Found& found) const {
    if (found.count == 0) return;
    const std::uint32_t at = DeviceWord(lengths[(level + 1) % 3]).fetch_add(found.count, std::memory_order_relaxed);
    std::uint32_t* const next = queue + (level + 1) % 2 * rows.per_rank + at;
    for (std::uint32_t i = 0; i < found.count; ++i) next[i] = found.vertices[i];
    found.count = 0;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t length(std::uint32_t level) const {
    return DeviceWord(lengths[level % 3]).load(std::memory_order_relaxed);
  }
};

/// Entries of a row that a thread looks at between two looks at the outlet.
BEELINE_HOST_DEVICE constexpr std::uint32_t entries_at_once(bool on_gpu) { return on_gpu ? 1 : 128; }

/// Visits the neighbours of this rank's vertices of `level`. Every thread of the grid calls it.
///   outlet  `add(owner, visit)`: one thread; `pass(block, ctx)`: the block, after each step; a status other than ok
///           ends the expansion
template <class Grid, class Outlet>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status expand(const Grid& grid, const beeline::Context& ctx,
                                                         const Rows& rows, const Queues& queues, std::uint32_t level,
                                                         Outlet& outlet) {
  const auto& block = grid.block();
  constexpr std::uint32_t at_once = entries_at_once(BEELINE_ON_GPU != 0);
  const std::uint32_t length = queues.length(level);
  const bool is_alone = grid.size() == 1;
  Found found;
  for (std::uint32_t index = grid.block_rank(); index < length; index += grid.blocks()) {
    const std::uint32_t local = queues.queue[level % 2 * rows.per_rank + index];
    const std::uint32_t end = rows.begins[local + 1], parent = rows.position_of(local);
    for (std::uint32_t at = rows.begins[local]; at < end; at += at_once * block.size()) {
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::uint32_t entry = at + k * block.size() + block.thread_rank();
        if (entry >= end) break;
        const std::uint32_t position = rows.neighbours[entry];
        if (!claim(queues.looked, position, is_alone)) continue;
        const std::uint32_t owner = rows.owner_of(position);
        const Visit visit{position - owner * rows.per_rank, parent};
        if (owner == rows.rank)
          queues.visit(rows, level, visit, found);
        else
          outlet.add(owner, visit);
      }
      if (const beeline::Status status = outlet.pass(block, ctx); status != beeline::Status::ok) return status;
    }
  }
  queues.append(rows, level, found);
  return beeline::Status::ok;
}

/// Begins a search; the root's owner has it in the queue of level 0.
struct BeginQueues {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Rows rows, Queues queues,
                                      std::uint32_t root) const {
    const std::uint32_t own = root - rows.position_of(0);
    for (std::uint32_t i = grid.thread_rank(); i < rows.per_rank; i += grid.size())
      rows.parents[i] = i == own ? root : no_vertex;
    for (std::uint32_t i = grid.thread_rank(); i < rows.words; i += grid.size())
      queues.visited[i] = i == own / 32 ? 1u << own % 32 : 0;
    for (std::uint32_t i = grid.thread_rank(); i < rows.all_words(); i += grid.size()) queues.looked[i] = 0;
    if (grid.thread_rank() != 0) return;
    queues.lengths[0] = own < rows.per_rank ? 1 : 0;
    queues.lengths[1] = queues.lengths[2] = 0;
    queues.queue[0] = own;
  }
};

/// The memory of `Queues`. Constructor and destructor are collective.
class QueueMemory {
 public:
  explicit QueueMemory(Graph& graph)
      : graph_(graph), visited_(graph.world(), graph.rows().words), looked_(graph.world(), graph.rows().all_words()),
        queue_(graph.world(), std::size_t{2} * graph.rows().per_rank), lengths_(graph.world(), 3) {}

  [[nodiscard]] Queues queues() const { return {visited_.data(), looked_.data(), queue_.data(), lengths_.data()}; }
  /// Collective. Returns when all ranks can begin.
  void begin(std::uint32_t root) {
    const Rows& rows = graph_.rows();
    launch_over(graph_.world(), rows.per_rank, BeginQueues{}, rows, queues(), root);
    graph_.world().synchronize();
    graph_.world().barrier();
  }
  /// Collective. After a level: vertices that all ranks have for the next level. The next queue but one is empty then.
  [[nodiscard]] std::uint64_t next_length(std::uint32_t level) {
    std::uint32_t length = 0;
    const std::uint32_t none = 0;
    graph_.world().copy(&length, lengths_.data() + (level + 1) % 3, sizeof length);
    graph_.world().copy(lengths_.data() + (level + 2) % 3, &none, sizeof none);
    return graph_.world().allreduce(std::uint64_t{length});
  }

 private:
  Graph& graph_;
  beeline::SymmetricArray<std::uint32_t> visited_, looked_, queue_, lengths_;
};

/// Bytes of `QueueMemory`, and of one area of visits from or to all ranks.
[[nodiscard]] constexpr std::uint64_t queue_bytes(std::uint64_t per_rank, std::uint64_t ranks) {
  return per_rank / 8 + ranks * per_rank / 8 + 8 * per_rank + 1024;
}
[[nodiscard]] constexpr std::uint64_t visit_bytes(std::uint64_t per_rank, std::uint64_t ranks) {
  return ranks * per_rank * sizeof(Visit);
}

}  // namespace breadth_first
