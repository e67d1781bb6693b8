// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method bitmap: one kernel for all levels, with a bit for each vertex. A level is pushed (vertices of the level look
/// for new neighbours) or pulled (new vertices look for a neighbour in the level, and stop at the first), whichever
/// looks at fewer edges; then the ranks exchange the bits of the next level. Source: Beamer, Asanović, Patterson,
/// "Direction-optimizing breadth-first search" (SC 2012).

#include <bit>

#include "beeline/device/barrier.hpp"
#include "beeline/device/impl/machine.hpp"
#include "beeline/device/put_get.hpp"
#include "bits.hpp"
#include "common/block_total.hpp"
#include "queues.hpp"

namespace breadth_first {

namespace {

/// The method's symmetric memory. Every rank has the bits of all ranks' positions, in the order of the ranks.
struct Bitmaps {
  std::uint32_t* level;   ///< [ranks, words] vertices of the level
  std::uint32_t* next;    ///< [ranks, words] vertices that this rank has found
  std::uint32_t* seen;    ///< [ranks, words] vertices of this and earlier levels
  std::uint32_t* found;   ///< [2, ranks, ranks, words] `next` of each rank; levels alternate
  std::uint64_t* totals;  ///< [3, 2] vertices and edges of a level: of this, of the next, and 0
  double* scratch;        ///< [blocks, threads]
  Course* course;
};

/// When to change direction. Push while the level has less than 1/14 of the edges that are left; pull while it has more
/// than 1/24 of all vertices: the factors of the source.
constexpr std::uint64_t pull_factor = 14, push_factor = 24;

constexpr std::uint32_t words_of_put = 4096;

template <class Grid>
class BitmapSearch {
 public:
  BEELINE_HOST_DEVICE BitmapSearch(Grid& grid, const beeline::Context& ctx, const Rows& rows, const Bitmaps& bitmaps)
      : grid_(grid), ctx_(ctx), rows_(rows), bitmaps_(bitmaps), own_(rows.rank * rows.words),
        warp_(grid.thread_rank() / lanes), warps_(grid.size() / lanes), lane_(grid.thread_rank() % lanes),
        left_(rows.entries) {}

  BEELINE_HOST_DEVICE void run(std::uint32_t root) {
    const std::uint64_t start = beeline::machine::clock_ns();
    clear(root);
    if (!meet()) return;  // ranks store parents in each other's memory, which is clear now
    Course course{1, 0, 0};
    for (std::uint32_t level = 0;; ++level) {
      is_pull_ ? pull() : push();
      if (grid_.sync(ctx_) != beeline::Status::ok) return;
      const std::uint64_t before = beeline::machine::clock_ns();
      if (!exchange(level)) return;
      course.exchange_ns += beeline::machine::clock_ns() - before;
      combine(level);
      if (grid_.sync(ctx_) != beeline::Status::ok) return;
      if (!choose(level + 1)) break;
      ++course.levels;
    }
    course.search_ns = beeline::machine::clock_ns() - start;
    if (grid_.thread_rank() == 0) *bitmaps_.course = course;
  }

 private:
  BEELINE_HOST_DEVICE void clear(std::uint32_t root) {
    const std::uint32_t own_root = root - rows_.position_of(0);
    for (std::uint32_t i = grid_.thread_rank(); i < rows_.per_rank; i += grid_.size())
      rows_.parents[i] = i == own_root ? root : no_vertex;
    for (std::uint32_t i = grid_.thread_rank(); i < rows_.all_words(); i += grid_.size()) {
      bitmaps_.level[i] = bitmaps_.seen[i] = i == root / 32 ? 1u << root % 32 : 0;
      bitmaps_.next[i] = 0;
    }
    for (std::uint32_t i = grid_.thread_rank(); i < 6; i += grid_.size()) bitmaps_.totals[i] = 0;
  }

  /// A barrier of all threads of all ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE bool meet() {
    if (grid_.sync(ctx_) != beeline::Status::ok) return false;
    if (ctx_.size == 1) return true;
    if (grid_.block_rank() == 0 && beeline::barrier(grid_.block(), ctx_) != beeline::Status::ok) return false;
    return grid_.sync(ctx_) == beeline::Status::ok;
  }

  /// Looks at the rows of this rank's vertices of the level.
  BEELINE_HOST_DEVICE void push() {
    const auto& block = grid_.block();
    for (std::uint32_t word = 0; word < rows_.of_grid / 32; ++word)
      for (std::uint32_t bits = bitmaps_.level[own_ + word]; bits != 0; bits &= bits - 1)
        push_row(32 * word + lowest_bit(bits), grid_.thread_rank(), grid_.size());
    for (std::uint32_t local = rows_.of_grid + grid_.block_rank(); local < rows_.of_block; local += grid_.blocks())
      if (has_bit(bitmaps_.level + own_, local)) push_row(local, block.thread_rank(), block.size());
    for (std::uint32_t word = rows_.of_block / 32 + warp_; word < rows_.words; word += warps_)
      for (std::uint32_t bits = bitmaps_.level[own_ + word]; bits != 0; bits &= bits - 1)
        push_row(32 * word + lowest_bit(bits), lane_, lanes);
  }
  BEELINE_HOST_DEVICE void push_row(std::uint32_t local, std::uint32_t thread, std::uint32_t threads) {
    const std::uint32_t end = rows_.begins[local + 1], parent = rows_.position_of(local);
    for (std::uint32_t i = rows_.begins[local] + thread; i < end; i += threads) {
      const std::uint32_t position = rows_.neighbours[i];
      if (has_bit(bitmaps_.seen, position) || !claim(bitmaps_.next, position)) continue;
      const std::uint32_t owner = rows_.owner_of(position);
      std::uint32_t* const to = rows_.parents + (position - owner * rows_.per_rank);
      // Ranks that find the same vertex store one after the other: each of these parents is right.
      if (owner == rows_.rank)
        DeviceWord(*to).store(parent, std::memory_order_relaxed);
      else
        static_cast<void>(beeline::put_value(ctx_, to, parent, owner));
    }
  }

  /// Looks at the rows of this rank's vertices that have not been found.
  BEELINE_HOST_DEVICE void pull() {
    for (std::uint32_t word = warp_; word < rows_.words; word += warps_) {
      const std::uint32_t seen = bitmaps_.seen[own_ + word];
      if (seen == 0xffffffff) continue;
      const std::uint32_t found = word_of([=, &rows = rows_, level = bitmaps_.level](std::uint32_t bit) {
        return (seen >> bit & 1u) == 0 && pull_vertex(rows, level, 32 * word + bit);
      });
      if (lane_ == 0 && found != 0) bitmaps_.next[own_ + word] = found;
    }
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static bool pull_vertex(const Rows& rows, const std::uint32_t* level,
                                                            std::uint32_t local) {
    std::uint32_t parent = rows.first[local];
    if (parent == no_vertex) return false;
    if (!has_bit(level, parent)) {
      const std::uint32_t end = rows.begins[local + 1];
      std::uint32_t i = rows.begins[local] + 1;
      while (i < end && !has_bit(level, parent = rows.neighbours[i])) ++i;
      if (i >= end) return false;
    }
    rows.parents[local] = parent;
    return true;
  }

  /// Moves what this rank has found to all ranks: after a pull its own vertices only.
  [[nodiscard]] BEELINE_HOST_DEVICE bool exchange(std::uint32_t level) {
    if (ctx_.size == 1) return true;
    const std::uint32_t first = is_pull_ ? own_ : 0, count = is_pull_ ? rows_.words : rows_.all_words();
    const std::uint32_t parts = (count + words_of_put - 1) / words_of_put;
    std::uint32_t* const area = bitmaps_.found + std::uint64_t{level % 2 * ctx_.size + ctx_.rank} * rows_.all_words();
    for (std::uint32_t item = grid_.block_rank(); item < parts * (ctx_.size - 1); item += grid_.blocks()) {
      const std::uint32_t peer = (ctx_.rank + 1 + item % (ctx_.size - 1)) % ctx_.size;
      const std::uint32_t at = item / (ctx_.size - 1) * words_of_put, rest = count - at;
      if (beeline::put(grid_.block(), ctx_, area + first + at, bitmaps_.next + first + at,
                       rest < words_of_put ? rest : words_of_put, peer) != beeline::Status::ok)
        return false;
    }
    return meet();
  }

  /// Makes the next level of what all ranks have found.
  BEELINE_HOST_DEVICE void combine(std::uint32_t level) {
    std::uint64_t vertices = 0, edges = 0;
    for (std::uint32_t word = grid_.thread_rank(); word < rows_.all_words(); word += grid_.size()) {
      const std::uint32_t bits = found_by_all(level, word) & ~bitmaps_.seen[word];
      bitmaps_.next[word] = 0;
      bitmaps_.level[word] = bits;
      if (bits == 0) continue;
      bitmaps_.seen[word] |= bits;
      const auto count = static_cast<std::uint32_t>(std::popcount(bits));
      vertices += count, edges += std::uint64_t{count} * rows_.word_degrees[word];
    }
    add_total(bitmaps_.totals[(level + 1) % 3 * 2], vertices);
    add_total(bitmaps_.totals[(level + 1) % 3 * 2 + 1], edges);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t found_by_all(std::uint32_t level, std::uint32_t word) const {
    const std::uint32_t* const found = bitmaps_.found + std::uint64_t{level % 2 * ctx_.size} * rows_.all_words() + word;
    if (is_pull_) {
      const std::uint32_t owner = ctx_.size == 1 ? 0 : word / rows_.words;
      return owner == ctx_.rank ? bitmaps_.next[word] : found[std::uint64_t{owner} * rows_.all_words()];
    }
    std::uint32_t bits = bitmaps_.next[word];
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      if (rank != ctx_.rank) bits |= found[std::uint64_t{rank} * rows_.all_words()];
    return bits;
  }
  BEELINE_HOST_DEVICE void add_total(std::uint64_t& total, std::uint64_t mine) {
    const auto& block = grid_.block();
    const double sum =
        apps::block_total(block, bitmaps_.scratch + grid_.block_rank() * block.size(), static_cast<double>(mine));
    if (block.thread_rank() == 0 && sum != 0)
      beeline::machine::DeviceAtomic<std::uint64_t>(total).fetch_add(static_cast<std::uint64_t>(sum),
                                                                     std::memory_order_relaxed);
    block.sync();
  }

  /// Chooses the direction of `level`, the same on all ranks, since all have the same totals. Returns whether the level
  /// has vertices.
  [[nodiscard]] BEELINE_HOST_DEVICE bool choose(std::uint32_t level) {
    using Total = beeline::machine::DeviceAtomic<std::uint64_t>;
    const std::uint64_t vertices = Total(bitmaps_.totals[level % 3 * 2]).load(std::memory_order_relaxed);
    const std::uint64_t edges = Total(bitmaps_.totals[level % 3 * 2 + 1]).load(std::memory_order_relaxed);
    if (grid_.thread_rank() == 0)
      for (std::uint32_t i = 0; i < 2; ++i)
        Total(bitmaps_.totals[(level + 2) % 3 * 2 + i]).store(0, std::memory_order_relaxed);
    is_pull_ =
        is_pull_ ? vertices * push_factor > std::uint64_t{rows_.ranks} * rows_.per_rank : edges * pull_factor > left_;
    left_ -= edges < left_ ? edges : left_;  // `edges` is an upper bound
    return vertices != 0;
  }

  Grid& grid_;
  const beeline::Context& ctx_;
  const Rows rows_;
  const Bitmaps bitmaps_;
  const std::uint32_t own_, warp_, warps_, lane_;  ///< own_: first word of this rank's vertices
  std::uint64_t left_;                             ///< edges of vertices that are not found
  bool is_pull_ = false;
};

struct SearchByBitmaps {
  static constexpr unsigned max_threads = block_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Rows rows, Bitmaps bitmaps,
                                      std::uint32_t root) const {
    BitmapSearch<Grid>(grid, ctx, rows, bitmaps).run(root);
  }
};

class ByBitmaps final : public Method {
 public:
  explicit ByBitmaps(Graph& graph)
      : Method(graph),
        blocks_(beeline::resident_blocks<SearchByBitmaps, Rows, Bitmaps, std::uint32_t>(world(), block_threads)),
        words_(world(), (3 + 2 * std::size_t{graph.rows().ranks}) * graph.rows().all_words()), totals_(world(), 6),
        scratch_(world(), scratch_doubles(world(), blocks_)), course_(world(), 1) {}

  Course search(std::uint32_t root) override {
    const Rows& rows = graph().rows();
    const std::size_t words = rows.all_words();
    std::uint32_t* const all = words_.data();
    const Bitmaps bitmaps{all,           all + words, all + 2 * words, all + 3 * words, totals_.data(), scratch_.data(),
                          course_.data()};
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, SearchByBitmaps{}, rows,
                    bitmaps, root);
    return end_search(course_);
  }

 private:
  static std::size_t scratch_doubles(beeline::World& world, unsigned blocks) {
    const std::size_t threads =
        world.device().is_gpu() ? 1 : blocks * static_cast<std::size_t>(std::max(1, world.config().host_threads));
    return world.allreduce(threads, beeline::Reduction::maximum);
  }

  unsigned blocks_;
  beeline::SymmetricArray<std::uint32_t> words_;
  beeline::SymmetricArray<std::uint64_t> totals_;
  beeline::SymmetricArray<double> scratch_;
  beeline::SymmetricArray<Course> course_;
};

}  // namespace

MethodInfo bitmap() {
  return MethodInfo::of<ByBitmaps>(
      {"bitmap",
       "one kernel for all levels, from the level or towards it, whichever is shorter; ranks exchange bitmaps",
       "device/peer/signal"});
}

}  // namespace breadth_first
