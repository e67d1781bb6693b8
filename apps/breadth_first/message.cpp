// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method message: one kernel for all levels, with vertices in active messages, as the official program has them. A
/// block that has collected enough vertices for a rank sends them, and a handler of that rank visits them while others
/// expand. Calls follow the official program's aml.h (apps/common/handlers.hpp).
///
/// A rank that has expanded its part of a level sends a last message to each rank, in each queue of messages. Messages
/// of a queue are handled in order, so a rank that has handled the last messages of all ranks has visited all vertices
/// of the level. No message of the level can come later: its queues may be read, and, after a search, be cleared.

#include "aggregator.hpp"
#include "beeline/device/impl/machine.hpp"
#include "common/handlers.hpp"
#include "levels.hpp"

namespace breadth_first {

namespace {

/// What the handlers work on.
struct Receiver {
  Rows rows;
  Queues queues;
  std::uint32_t* level;  ///< the level whose messages may come
  std::uint64_t* ended;  ///< [ranks] last messages of each rank in a search
};

struct VisitAll;
struct EndLevel;
using VisitList = apps::HandlerList<VisitAll, EndLevel>;
using VisitSender = apps::Sender<VisitList>;

/// Visits the vertices of a message.
struct VisitAll {
  static constexpr const char* name = "visit_all";
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context&, const VisitSender&, std::uint32_t,
                                      const std::byte* data, std::size_t bytes, void* object) const {
    const auto& receiver = *static_cast<const Receiver*>(object);
    const Rows rows = receiver.rows;
    const Queues queues = receiver.queues;
    const std::uint32_t level = DeviceWord(*receiver.level).load(std::memory_order_relaxed);
    const auto* const visits = reinterpret_cast<const Visit*>(data);
    Found found;
    for (std::size_t i = group.thread_rank(); i < bytes / sizeof(Visit); i += group.size())
      queues.visit(rows, level, visits[i], found);
    queues.append(rows, level, found);
  }
};

/// Counts the last message of a rank in a level and a queue.
struct EndLevel {
  static constexpr const char* name = "end_level";
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx, const VisitSender&,
                                      std::uint32_t from, const std::byte*, std::size_t, void* object) const {
    const auto& receiver = *static_cast<const Receiver*>(object);
    beeline::signal_add(group, ctx, receiver.ended + from, 1, ctx.rank);  // a failure ends the search by itself
  }
};

struct SendVisits {
  VisitSender sender;
  std::uint32_t queue;  ///< of the block

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status operator()(const Block& block, const beeline::Context& ctx,
                                                               std::uint32_t rank, const Visit* visits,
                                                               std::uint32_t count) const {
    return sender.send<VisitAll>(block, ctx, visits, count * sizeof(Visit), rank, queue);
  }
};

/// The method's symmetric memory, without queues and buffers.
struct MessageWords {
  std::uint32_t* level;    ///< `Receiver::level`
  std::uint64_t* ended;    ///< `Receiver::ended`
  std::uint32_t* lengths;  ///< [2, ranks] of the next queues of all ranks
  Course* course;
};

template <class Grid>
class MessageSearch {
 public:
  BEELINE_HOST_DEVICE MessageSearch(Grid& grid, const beeline::Context& ctx, const VisitSender& sender,
                                    const MessageWords& words)
      : grid_(grid), ctx_(ctx), sender_(sender), words_(words) {}

  BEELINE_HOST_DEVICE void run(const Rows& rows, const Queues& queues, const VisitBuffers& buffers) {
    const std::uint64_t start = beeline::machine::clock_ns();
    Aggregator<SendVisits> aggregator(buffers, grid_, SendVisits{sender_, grid_.block_rank() % sender_.queues()});
    Course course{};
    for (bool goes_on = true; goes_on; ++course.levels) {
      const auto level = static_cast<std::uint32_t>(course.levels);
      if (expand(grid_, ctx_, rows, queues, level, aggregator) != beeline::Status::ok) return;
      const std::uint64_t expanded = beeline::machine::clock_ns();
      if (aggregator.finish(grid_.block(), ctx_) != beeline::Status::ok) return;
      if (!send_last() || !await_last(level)) return;
      if (!end_level(grid_, ctx_, queues, level, words_.lengths, goes_on)) return;
      course.exchange_ns += beeline::machine::clock_ns() - expanded;
    }
    course.search_ns = beeline::machine::clock_ns() - start;
    if (grid_.thread_rank() == 0) *words_.course = course;
  }

 private:
  /// Sends the last messages of a level, behind those of all blocks.
  [[nodiscard]] BEELINE_HOST_DEVICE bool send_last() {
    if (ctx_.size == 1) return true;
    if (grid_.sync(ctx_) != beeline::Status::ok) return false;
    for (std::uint32_t queue = grid_.block_rank(); queue < sender_.queues(); queue += grid_.blocks())
      for (std::uint32_t step = 1; step < ctx_.size; ++step) {
        const std::uint32_t rank = (ctx_.rank + step) % ctx_.size;
        if (sender_.send<EndLevel>(grid_.block(), ctx_, nullptr, 0, rank, queue) != beeline::Status::ok) return false;
      }
    return true;
  }
  /// Waits in the first block until this rank has visited all vertices of the level.
  [[nodiscard]] BEELINE_HOST_DEVICE bool await_last(std::uint32_t level) {
    if (grid_.block_rank() != 0) return true;
    const std::uint64_t expected = std::uint64_t{level + 1} * sender_.queues();
    for (std::uint32_t step = 1; step < ctx_.size; ++step) {
      const std::uint32_t rank = (ctx_.rank + step) % ctx_.size;
      if (beeline::wait(grid_.block(), ctx_, words_.ended + rank, beeline::Compare::greater_equal, expected, rank) !=
          beeline::Status::ok)
        return false;
    }
    // Before the barrier of `end_level`: no rank sends messages of the next level until all have passed it.
    if (grid_.thread_rank() == 0) DeviceWord(*words_.level).store(level + 1, std::memory_order_relaxed);
    return true;
  }

  Grid& grid_;
  const beeline::Context& ctx_;
  const VisitSender sender_;
  const MessageWords words_;
};

struct SearchByMessages {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Rows rows, Queues queues,
                                      VisitBuffers buffers, VisitSender sender, MessageWords words) const {
    MessageSearch<Grid>(grid, ctx, sender, words).run(rows, queues, buffers);
  }
};

/// Shape of the queues of messages. Handlers on a GPU are warps, of which it takes many to visit as fast as blocks
/// expand.
beeline::TaskOptions shape_of_queues(const beeline::World& world) {
  if (world.device().is_gpu()) return {.queues = 64, .depth = 8, .workers = 128, .multiprocessors = 16};
  return {.queues = 1, .workers = 1};
}

class ByMessages final : public Method {
 public:
  explicit ByMessages(Graph& graph)
      : Method(graph), memory_(graph), receiver_(world(), 1), levels_(world(), 1), ended_(world(), graph.rows().ranks),
        lengths_(world(), 2 * std::size_t{graph.rows().ranks}), course_(world(), 1),
        handlers_(world(), most_visits(world()) * sizeof(Visit), shape_of_queues(world())),
        buffers_(world(),
                 beeline::resident_blocks<SearchByMessages, Rows, Queues, VisitBuffers, VisitSender, MessageWords>(
                     world(), block_threads)) {
    const Receiver receiver{graph.rows(), memory_.queues(), levels_.data(), ended_.data()};
    world().copy(receiver_.data(), &receiver, sizeof receiver);
    handlers_.register_handler<VisitAll>(receiver_.data());
    handlers_.register_handler<EndLevel>(receiver_.data());
  }

  Course search(std::uint32_t root) override {
    const std::vector<std::uint64_t> zeros(ended_.count());
    world().copy(levels_.data(), zeros.data(), levels_.bytes());
    world().copy(ended_.data(), zeros.data(), ended_.bytes());
    memory_.begin(root);
    beeline::launch(world(), {.blocks = buffers_.blocks(), .threads = block_threads, .waits = true}, SearchByMessages{},
                    graph().rows(), memory_.queues(), buffers_.buffers(), handlers_.sender(),
                    MessageWords{levels_.data(), ended_.data(), lengths_.data(), course_.data()});
    return end_search(course_);
  }

 private:
  QueueMemory memory_;
  beeline::SymmetricArray<Receiver> receiver_;
  beeline::SymmetricArray<std::uint32_t> levels_;
  beeline::SymmetricArray<std::uint64_t> ended_;
  beeline::SymmetricArray<std::uint32_t> lengths_;
  beeline::SymmetricArray<Course> course_;
  apps::Handlers<VisitList> handlers_;  ///< before the buffers: its workers take a part of the device
  BufferMemory buffers_;
};

}  // namespace

MethodInfo message() {
  return MethodInfo::of<ByMessages>(
      {"message",
       "one kernel for all levels, by active messages: blocks send vertices, handlers of their owners visit them",
       "task/peer/signal"});
}

}  // namespace breadth_first
