// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method alltoallv: level by level. A kernel expands the level's queue, the ranks exchange how many vertices each has
/// for each, then the vertices themselves by all-to-all-v, and a kernel visits them.

#include <algorithm>
#include <cstring>
#include <span>

#include "beeline/device/impl/machine.hpp"
#include "queues.hpp"

namespace breadth_first {

namespace {

/// Visits by rank, one after the other over all levels: a rank sends a vertex once, so there is always room.
struct Bins {
  Visit* visits;         ///< [ranks, per_rank]
  std::uint32_t* fills;  ///< [ranks] visits of all levels up to now
  std::uint32_t per_rank;

  BEELINE_HOST_DEVICE void add(std::uint32_t rank, const Visit& visit) {
    const std::uint32_t at = DeviceWord(fills[rank]).fetch_add(1, std::memory_order_relaxed);
    visits[std::uint64_t{rank} * per_rank + at] = visit;
  }
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status pass(const Block&, const beeline::Context&) {
    return beeline::Status::ok;
  }
};

struct ExpandIntoBins {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Rows rows, Queues queues,
                                      std::uint32_t level, Bins bins) const {
    static_cast<void>(expand(grid, ctx, rows, queues, level, bins));
  }
};

struct VisitReceived {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Rows rows, Queues queues,
                                      std::uint32_t level, const Visit* visits, std::uint32_t count) const {
    Found found;
    for (std::uint32_t i = grid.thread_rank(); i < count; i += grid.size()) queues.visit(rows, level, visits[i], found);
    queues.append(rows, level, found);
  }
};

class AllToAllV final : public Method {
 public:
  explicit AllToAllV(Graph& graph)
      : Method(graph), memory_(graph), outgoing_(world(), std::size_t{graph.rows().ranks} * graph.rows().per_rank),
        incoming_(world(), outgoing_.count()), fills_(world(), graph.rows().ranks), sent_(graph.rows().ranks) {}

  Course search(std::uint32_t root) override {
    const Rows& rows = graph().rows();
    const std::uint64_t start = beeline::machine::clock_ns();
    std::ranges::fill(sent_, 0);
    world().copy(fills_.data(), sent_.data(), fills_.bytes());
    memory_.begin(root);
    Course course{1, 0, 0};
    for (std::uint32_t level = 0;; ++level) {
      launch_over(world(), std::uint64_t{block_threads} * rows.per_rank, ExpandIntoBins{}, rows, memory_.queues(),
                  level, Bins{outgoing_.data(), fills_.data(), rows.per_rank});
      world().synchronize();
      const std::uint64_t before = beeline::machine::clock_ns();
      const std::size_t count = exchange();
      course.exchange_ns += beeline::machine::clock_ns() - before;
      launch_over(world(), count, VisitReceived{}, rows, memory_.queues(), level, incoming_.data(),
                  static_cast<std::uint32_t>(count));
      world().synchronize();
      const std::uint64_t visited = beeline::machine::clock_ns();
      const std::uint64_t next = memory_.next_length(level);
      course.exchange_ns += beeline::machine::clock_ns() - visited;
      if (next == 0) break;
      ++course.levels;
    }
    course.search_ns = beeline::machine::clock_ns() - start;
    return course;
  }

 private:
  /// Returns the number of visits that this rank got.
  std::size_t exchange() {
    const std::size_t ranks = sent_.size(), per_rank = graph().rows().per_rank;
    std::vector<std::uint32_t> fills(ranks);
    world().copy(fills.data(), fills_.data(), fills_.bytes());
    std::vector<std::size_t> counts[2] = {std::vector<std::size_t>(ranks), std::vector<std::size_t>(ranks)};
    std::vector<std::size_t> offsets[2] = {std::vector<std::size_t>(ranks), std::vector<std::size_t>(ranks)};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      counts[0][rank] = fills[rank] - sent_[rank], offsets[0][rank] = rank * per_rank + sent_[rank];
      sent_[rank] = fills[rank];
    }
    const auto all = world().allgather(std::as_bytes(std::span(counts[0])));
    std::size_t sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::memcpy(&counts[1][rank], all[rank].data() + static_cast<std::size_t>(world().rank()) * sizeof sum,
                  sizeof sum);
      offsets[1][rank] = sum, sum += counts[1][rank];
    }
    graph().collectives().alltoallv(incoming_, outgoing_, {counts[0], offsets[0], counts[1], offsets[1]});
    return sum;
  }

  QueueMemory memory_;
  beeline::SymmetricArray<Visit> outgoing_, incoming_;
  beeline::SymmetricArray<std::uint32_t> fills_;
  std::vector<std::uint32_t> sent_;  ///< [ranks] visits sent in this search
};

}  // namespace

MethodInfo alltoallv() {
  return MethodInfo::of<AllToAllV>(
      {"alltoallv",
       "level by level: kernels expand and visit, the host exchanges vertices by all-to-all-v between them",
       "stream/peer/signal"});
}

}  // namespace breadth_first
