// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method put: one kernel for all levels. Blocks collect vertices for each rank, and put full buffers into its memory;
/// after a barrier of all ranks the owners visit them.

#include "aggregator.hpp"
#include "beeline/device/impl/machine.hpp"
#include "levels.hpp"

namespace breadth_first {

namespace {

/// The method's symmetric memory. In a search a rank sends each vertex at most once, so all visits fit.
struct Inbox {
  Visit* visits;           ///< [ranks, per_rank] from each rank, one after the other over all levels
  std::uint32_t* put;      ///< [ranks] visits that this rank has put to each rank
  std::uint32_t* arrived;  ///< [2, ranks] visits from each rank after a level; levels alternate
  std::uint32_t* lengths;  ///< [2, ranks] of the next queues of all ranks
  std::uint32_t* starts;   ///< [blocks] where a block's buffer goes
  Course* course;
};

struct PutVisits {
  Inbox inbox;
  std::uint32_t per_rank;
  unsigned number;  ///< of the block

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status operator()(const Block& block, const beeline::Context& ctx,
                                                               std::uint32_t rank, const Visit* visits,
                                                               std::uint32_t count) const {
    if (block.thread_rank() == 0)
      inbox.starts[number] = DeviceWord(inbox.put[rank]).fetch_add(count, std::memory_order_relaxed);
    block.sync();
    Visit* const to = inbox.visits + std::uint64_t{ctx.rank} * per_rank + inbox.starts[number];
    beeline::Status status = beeline::put(block, ctx, to, visits, count, rank);
    // The buffer may be reused; all threads have read `starts`.
    if (status == beeline::Status::ok) status = beeline::flush(block, ctx);
    return status;
  }
};

template <class Grid>
class PutSearch {
 public:
  BEELINE_HOST_DEVICE PutSearch(Grid& grid, const beeline::Context& ctx, const Rows& rows, const Queues& queues,
                                const VisitBuffers& buffers, const Inbox& inbox)
      : grid_(grid), ctx_(ctx), rows_(rows), queues_(queues), inbox_(inbox),
        aggregator_(buffers, grid, PutVisits{inbox, rows.per_rank, grid.block_rank()}) {}

  BEELINE_HOST_DEVICE void run() {
    const std::uint64_t start = beeline::machine::clock_ns();
    Course course{};
    for (bool goes_on = true; goes_on; ++course.levels) {
      const auto level = static_cast<std::uint32_t>(course.levels);
      if (expand(grid_, ctx_, rows_, queues_, level, aggregator_) != beeline::Status::ok) return;
      const std::uint64_t expanded = beeline::machine::clock_ns();
      if (aggregator_.finish(grid_.block(), ctx_) != beeline::Status::ok) return;
      if (!publish(grid_, ctx_, level, inbox_.arrived, {inbox_.put, 1})) return;
      const std::uint64_t arrived = beeline::machine::clock_ns();
      visit_arrived(level);
      const std::uint64_t visited = beeline::machine::clock_ns();
      if (!end_level(grid_, ctx_, queues_, level, inbox_.lengths, goes_on)) return;
      course.exchange_ns += arrived - expanded + beeline::machine::clock_ns() - visited;
    }
    course.search_ns = beeline::machine::clock_ns() - start;
    if (grid_.thread_rank() == 0) *inbox_.course = course;
  }

 private:
  BEELINE_HOST_DEVICE void visit_arrived(std::uint32_t level) {
    const std::uint32_t *const end = inbox_.arrived + level % 2 * ctx_.size, *const begin = inbox_.arrived +
                                                                                            (level + 1) % 2 * ctx_.size;
    Found found;
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      for (std::uint32_t i = beeline::load_value(begin + rank) + grid_.thread_rank();
           i < beeline::load_value(end + rank); i += grid_.size())
        queues_.visit(rows_, level, inbox_.visits[std::uint64_t{rank} * rows_.per_rank + i], found);
    queues_.append(rows_, level, found);
  }
  Grid& grid_;
  const beeline::Context& ctx_;
  const Rows rows_;
  const Queues queues_;
  const Inbox inbox_;
  Aggregator<PutVisits> aggregator_;
};

struct SearchByPuts {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Rows rows, Queues queues,
                                      VisitBuffers buffers, Inbox inbox) const {
    PutSearch<Grid>(grid, ctx, rows, queues, buffers, inbox).run();
  }
};

class ByPuts final : public Method {
 public:
  explicit ByPuts(Graph& graph)
      : Method(graph), memory_(graph),
        buffers_(world(),
                 beeline::resident_blocks<SearchByPuts, Rows, Queues, VisitBuffers, Inbox>(world(), block_threads)),
        visits_(world(), std::size_t{graph.rows().ranks} * graph.rows().per_rank),
        words_(world(), 5 * std::size_t{graph.rows().ranks} + buffers_.blocks()), course_(world(), 1) {}

  Course search(std::uint32_t root) override {
    const Rows& rows = graph().rows();
    const std::vector<std::uint32_t> zeros(5 * std::size_t{rows.ranks});
    world().copy(words_.data(), zeros.data(), zeros.size() * sizeof(std::uint32_t));
    memory_.begin(root);
    std::uint32_t* const words = words_.data();
    const Inbox inbox{visits_.data(),         words,         words + rows.ranks, words + 3 * rows.ranks,
                      words + 5 * rows.ranks, course_.data()};
    beeline::launch(world(), {.blocks = buffers_.blocks(), .threads = block_threads, .waits = true}, SearchByPuts{},
                    rows, memory_.queues(), buffers_.buffers(), inbox);
    return end_search(course_);
  }

 private:
  QueueMemory memory_;
  BufferMemory buffers_;
  beeline::SymmetricArray<Visit> visits_;
  beeline::SymmetricArray<std::uint32_t> words_;
  beeline::SymmetricArray<Course> course_;
};

}  // namespace

MethodInfo put() {
  return MethodInfo::of<ByPuts>({"put",
                                 "one kernel for all levels: blocks put collected vertices into their owners' memory",
                                 "device/peer/signal"});
}

}  // namespace breadth_first
