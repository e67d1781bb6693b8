// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method task: a task is a handful of nodes. The worker that runs it searches below these nodes with its own stack.
/// While it has more nodes than it needs to keep busy, it gives nodes away, as tasks for any worker of any rank. No
/// rank waits for another; the search is over when no task is left.

#include <bit>

#include "beeline/device/impl/warp_machine.hpp"
#include "beeline/host/tasks.hpp"
#include "counting.hpp"
#include "method.hpp"

namespace tree_search {

namespace {

/// Largest number of nodes of a task: they travel in the cell of the message.
constexpr std::uint32_t nodes_of_task = 16;
/// Nodes of a worker's stack. A stack overflow is a fault: see `Search::faults`.
constexpr std::uint64_t stack_nodes = std::uint64_t{1} << 14;

constexpr beeline::TaskOptions shape(bool gpus) {
  return gpus ? beeline::TaskOptions{.queues = 64, .depth = 16, .workers = 128, .multiprocessors = 16}
              : beeline::TaskOptions{.queues = 1, .depth = 16, .workers = 1};
}

/// Data of the workers of a rank.
struct Search {
  Tree tree;
  Counts* counts;
  Node* stacks;           ///< [workers, stack_nodes]
  std::uint64_t* faults;  ///< number of stack overflows
};

struct Visit;
using Functions = beeline::TaskList<Visit>;

/// Searches below the nodes of its payload.
struct Visit {
  static constexpr const char* name = "visit";
  struct Arguments {
    std::uint32_t turn;  ///< chooses the rank and queue that get the next nodes
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx, const beeline::Task& task) const;
};

/// The threads of a worker (a warp, or a thread of a host rank) whose `mine` is true, one bit for each thread.
BEELINE_HOST_DEVICE inline std::uint32_t votes(const beeline::Warp&, bool mine) {
  return beeline::machine::ballot(mine);
}
BEELINE_HOST_DEVICE inline std::uint32_t votes(const beeline::HostTeam&, bool mine) { return mine ? 1 : 0; }

/// A worker's stack, from which each thread takes one node at a time.
template <class Group>
class Searcher {
 public:
  BEELINE_HOST_DEVICE Searcher(const Group& group, const beeline::Context& ctx, const beeline::Task& task)
      : group_(group), ctx_(ctx), task_(task), search_(*static_cast<const Search*>(task.object)), tree_(search_.tree),
        stack_(search_.stacks + std::uint64_t{task.worker} * stack_nodes), turn_(task.as<Visit::Arguments>().turn) {}

  BEELINE_HOST_DEVICE void run() {
    begin();
    for (std::uint32_t round = 1; size_ > 0; ++round) {
      if (!expand()) break;
      if (round % rounds_of_share() == 0 && size_ >= 2 * nodes_of_task) share();
    }
    tally_.give(*search_.counts);
  }

 private:
  /// Rounds between two posts, since a post takes as long as several rounds. More on a CPU, where a round expands only
  /// one node, and where there are few other ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t rounds_of_share() const { return group_.size() == 1 ? 1024 : 2; }

  BEELINE_HOST_DEVICE void begin() {
    size_ = static_cast<std::uint32_t>(task_.payload_bytes / sizeof(Node));
    const auto* const nodes = static_cast<const Node*>(task_.payload);
    for (std::uint32_t i = group_.thread_rank(); i < size_; i += group_.size()) stack_[i] = nodes[i];
    group_.sync();
  }

  /// Each thread takes a node from the top, and pushes the node's children. Returns false if the stack is full.
  BEELINE_HOST_DEVICE bool expand() {
    const std::uint32_t thread = group_.thread_rank(), most = group_.size();
    const std::uint32_t taken = size_ < most ? size_ : most;
    const bool has_node = thread < taken;
    Node node{};
    if (has_node) node = stack_[size_ - 1 - thread];
    const std::uint32_t children = has_node ? tree_.children_of(node) : 0;
    if (has_node) tally_.add(node, children);
    const std::uint32_t parents = votes(group_, children != 0);
    group_.sync();  // all threads have read
    size_ -= taken;
    // All nodes but the root have an equal number of children, or none; the root is alone in its round.
    const bool is_root = group_.any(has_node && node.depth == 0);
    const std::uint32_t of_each = is_root ? tree_.root_children : tree_.children;
    const std::uint32_t born = static_cast<std::uint32_t>(std::popcount(parents)) * of_each;
    if (std::uint64_t{size_} + born > stack_nodes) return fail();
    if (children != 0) {
      const std::uint32_t before = static_cast<std::uint32_t>(std::popcount(parents & ((1u << thread) - 1)));
      Node* const to = stack_ + size_ + before * of_each;
      for (std::uint32_t i = 0; i < children; ++i) to[i] = Tree::child(node, i);
    }
    size_ += born;
    group_.sync();
    return true;
  }
  BEELINE_HOST_DEVICE bool fail() const {
    if (group_.thread_rank() == 0)
      beeline::detail::DeviceAtomic<std::uint64_t>(*search_.faults).fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  /// Gives nodes from the top away, to ranks and queues in turn, if a cell is free at once.
  BEELINE_HOST_DEVICE void share() {
    ++turn_;
    const Visit::Arguments arguments{turn_ * 0x9e3779b9u};
    beeline::TaskPost post =
        beeline::task_of<Functions, Visit>(arguments, turn_ % ctx_.size, turn_ / ctx_.size % task_.channel.queues);
    post.payload = stack_ + size_ - nodes_of_task, post.payload_bytes = nodes_of_task * sizeof(Node);
    post.order = beeline::Order::relaxed;
    if (beeline::post_task(group_, ctx_, task_.channel, post, beeline::Timeout::test()) == beeline::Status::ok)
      size_ -= nodes_of_task;
  }

  const Group& group_;
  const beeline::Context& ctx_;
  const beeline::Task& task_;
  const Search& search_;
  const Tree tree_;
  Node* const stack_;
  std::uint32_t turn_, size_ = 0;
  Tally tally_;
};

template <class Group>
BEELINE_HOST_DEVICE void Visit::operator()(const Group& group, const beeline::Context& ctx,
                                           const beeline::Task& task) const {
  Searcher<Group>(group, ctx, task).run();
}

/// Posts a task with the root.
struct Begin {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, beeline::TaskChannel tasks,
                                      Node root) const {
    if (grid.block().thread_rank() != 0) return;
    const Visit::Arguments arguments{0};
    beeline::TaskPost post = beeline::task_of<Functions, Visit>(arguments, ctx.rank);
    post.payload = &root, post.payload_bytes = sizeof root;
    static_cast<void>(beeline::post_task(beeline::Thread{}, ctx, tasks, post));
  }
};

class TaskSearch final : public Method {
 public:
  explicit TaskSearch(Problem& problem)
      : Method(problem), options_(shape(world().device().is_gpu())), tasks_(world(), options_),
        stacks_(world(), options_.workers * stack_nodes), search_(world(), 1), faults_(world(), 1),
        payloads_(world(), tasks_.payload_buffer_bytes(nodes_of_task * sizeof(Node))) {
    const Search search{problem.tree(), problem.counts(), stacks_.data(), faults_.data()};
    world().copy(search_.data(), &search, sizeof search);
    tasks_.register_function<Visit>(
        {.object = search_.data(), .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }

  void search() override {
    if (world().rank() == 0) {
      beeline::launch(world(), {.threads = 32, .waits = true}, Begin{}, tasks_.channel(), problem().tree().root());
      world().synchronize();
    }
    tasks_.quiet();
    std::uint64_t faults = 0;
    world().copy(&faults, faults_.data(), sizeof faults);
    beeline::require(world().allreduce(faults) == 0, beeline::Status::no_resource,
                     "a worker's stack has no room for the children of its nodes");
  }

 private:
  const beeline::TaskOptions options_;
  beeline::Tasks<Functions> tasks_;
  beeline::SymmetricArray<Node> stacks_;
  beeline::SymmetricArray<Search> search_;
  beeline::SymmetricArray<std::uint64_t> faults_;
  beeline::SymmetricArray<std::byte> payloads_;
};

}  // namespace

std::size_t task_heap_bytes(int ranks, bool gpus) {
  const beeline::TaskOptions options = shape(gpus);
  const std::size_t slots = std::size_t{options.queues} * static_cast<std::size_t>(ranks) * options.depth;
  const std::size_t payload = nodes_of_task * sizeof(Node), words = beeline::task_words * 16;
  return options.workers * stack_nodes * sizeof(Node) + slots * (words + payload) + (std::size_t{1} << 20);
}

MethodInfo task() {
  return MethodInfo::of<TaskSearch>(
      {"task", "tasks of a few nodes: a worker searches below them, and gives nodes away to any worker of any rank",
       "task/peer/signal"});
}

}  // namespace tree_search
