// SPDX-License-Identifier: Apache-2.0
// Uses of active messages: sums into remote arrays, a reduction without further calls, and a search that finds its work
// while it runs.
#include <algorithm>
#include <vector>

#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::task_use_cases {

namespace {

using namespace beeline;

/// MPI_Accumulate: adds the payload to a part of the target's array, each element by an atomic.
struct Accumulate {
  static constexpr const char* name = "accumulate";
  struct Arguments {
    std::uint64_t first, count;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    const Arguments& at = task.as<Arguments>();
    auto* const array = static_cast<std::uint64_t*>(task.object);
    const auto* const values = static_cast<const std::uint64_t*>(task.payload);
    for (std::uint64_t i = group.thread_rank(); i < at.count; i += group.size())
      detail::DeviceAtomic<std::uint64_t>(array[at.first + i]).fetch_add(values[i], std::memory_order_relaxed);
  }
};

/// A member's part of a sum. The owner of the sum adds it, and after the last part sends the sum to all.
struct Part {
  static constexpr const char* name = "part";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const;
};
struct Total {
  static constexpr const char* name = "total";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) *static_cast<std::uint64_t*>(task.object) = task.as<Arguments>().value;
  }
};

/// A node of a tree whose shape follows from hashes; its children become tasks of any rank.
struct Node {
  std::uint64_t hash;
  std::uint32_t depth;

  static constexpr std::uint32_t deepest = 14, most_children = 4;
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t children() const {
    if (depth == deepest) return 0;
    return depth < 2 ? most_children : static_cast<std::uint32_t>(hash >> 32) % most_children;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Node child(std::uint32_t index) const {
    std::uint64_t next = hash + 0x9e3779b97f4a7c15u * (index + 1);
    next = (next ^ next >> 30) * 0xbf58476d1ce4e5b9u;
    next = (next ^ next >> 27) * 0x94d049bb133111ebu;
    return {next ^ next >> 31, depth + 1};
  }
};
struct Visit {
  static constexpr const char* name = "visit";
  using Arguments = Node;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const;
};

using List = TaskList<Accumulate, Part, Total, Visit>;

struct PartialSum {
  std::uint64_t sum, parts;
};

template <class Group>
BEELINE_HOST_DEVICE void Part::operator()(const Group& group, const Context& ctx, const Task& task) const {
  if (group.thread_rank() != 0) return;
  PartialSum& partial = *static_cast<PartialSum*>(task.object);  // one worker: parts are added one after another
  partial.sum += task.as<Arguments>().value;
  if (++partial.parts != ctx.size) return;
  const Total::Arguments total{partial.sum};
  partial = {};
  for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
    static_cast<void>(post_task(Thread{}, ctx, task.channel, task_of<List, Total>(total, rank, 0)));
}

/// Visits a node. A child that finds no free cell at its rank at once is visited here.
template <class Group>
BEELINE_HOST_DEVICE void Visit::operator()(const Group& group, const Context& ctx, const Task& task) const {
  if (group.thread_rank() != 0) return;
  Node stack[Node::deepest * Node::most_children];
  std::uint32_t left = 0;
  std::uint64_t visited = 0;
  for (stack[left++] = task.as<Node>(); left > 0; ++visited) {
    const Node node = stack[--left];
    for (std::uint32_t i = 0; i < node.children(); ++i) {
      const Node child = node.child(i);
      const auto rank = static_cast<std::uint32_t>(child.hash % ctx.size);
      const Status posted =
          post_task(Thread{}, ctx, task.channel, task_of<List, Visit>(child, rank, 1), Timeout::test());
      if (posted == Status::timeout) stack[left++] = child;
    }
  }
  detail::DeviceAtomic<std::uint64_t>(*static_cast<std::uint64_t*>(task.object))
      .fetch_add(visited, std::memory_order_relaxed);
}

struct AccumulateArguments {
  TaskChannel channel;
  const std::uint64_t* values;
  std::uint64_t count, rounds;
};
/// Blocks add to overlapping parts, each by its own queue.
struct AccumulateKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      AccumulateArguments a) const {
    const std::uint32_t queue = grid.block_rank();
    for (std::uint64_t round = 0; round < a.rounds; ++round)
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank) {
        const Accumulate::Arguments at{round % a.count, a.count};
        TaskPost post = task_of<List, Accumulate>(at, rank, queue);
        post.payload = a.values, post.payload_bytes = a.count * sizeof(std::uint64_t);
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(grid.block(), ctx, a.channel, post));
      }
  }
};

BEELINE_CASE(task, sums_into_remote_arrays, 1) {
  need_one_kind(test);
  World& world = test.world();
  constexpr std::uint64_t count = 40, rounds = 80;
  Tasks<List> tasks(world, {.queues = 2, .depth = 4, .workers = 2});
  const SymmetricArray<std::uint64_t> array(world, 2 * count), values(world, count);
  const SymmetricArray<std::byte> buffer(world, tasks.payload_buffer_bytes(values.bytes()));
  tasks.register_function<Accumulate>({array.data(), buffer.data(), buffer.bytes(), nullptr});
  const std::vector<std::uint64_t> ones(count, 1);
  world.copy(values.data(), ones.data(), values.bytes());
  world.barrier();
  test.run(test.shape(2, true), AccumulateKernel{}, AccumulateArguments{tasks.channel(), values.data(), count, rounds},
           "sums");
  tasks.quiet();
  std::vector<std::uint64_t> expected(2 * count), found(2 * count);
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (std::uint64_t i = 0; i < count; ++i)
      expected[round % count + i] += 2 * static_cast<std::uint64_t>(test.size());
  world.copy(found.data(), array.data(), array.bytes());
  BEELINE_CHECK(expected == found);
  world.barrier();
}

/// At one index each target registers its own array, payload buffer and count, or none: posts name none of these.
BEELINE_CASE(task, registrations_of_targets_differ, 1) {
  need_one_kind(test);
  World& world = test.world();
  constexpr std::uint64_t count = 40, rounds = 80;
  const auto own = static_cast<std::size_t>(test.rank()), size = static_cast<std::size_t>(test.size());
  Tasks<List> tasks(world, {.queues = 2, .depth = 4, .workers = 2});
  const SymmetricArray<std::uint64_t> array(world, 2 * count + size), values(world, count), ran(world, size);
  const std::size_t buffer_of_one = tasks.payload_buffer_bytes(values.bytes());
  const SymmetricArray<std::byte> buffer(world, (1 + size) * buffer_of_one);
  const bool counts = own % 2 == 1;
  tasks.register_function<Accumulate>({.object = array.data() + own,
                                       .payloads = buffer.data() + 16 * own,
                                       .payload_bytes = (1 + own) * buffer_of_one,
                                       .completion = counts ? ran.data() + own : nullptr});
  const std::vector<std::uint64_t> ones(count, 1);
  world.copy(values.data(), ones.data(), values.bytes());
  world.barrier();
  test.run(test.shape(2, true), AccumulateKernel{}, AccumulateArguments{tasks.channel(), values.data(), count, rounds},
           "sums");
  tasks.quiet();
  std::vector<std::uint64_t> expected(array.count()), found(array.count()), counted(size), expected_counts(size);
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (std::uint64_t i = 0; i < count; ++i) expected[own + round % count + i] += 2 * size;
  if (counts) expected_counts[own] = 2 * rounds * size;
  world.copy(found.data(), array.data(), array.bytes());
  world.copy(counted.data(), ran.data(), ran.bytes());
  BEELINE_CHECK(expected == found);
  BEELINE_CHECK(expected_counts == counted);
  world.barrier();
}

BEELINE_CASE(task, a_reduction_that_runs_by_itself, 1) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<List> tasks(world, {.queues = 2, .depth = 4, .workers = 2});
  const SymmetricArray<PartialSum> partial(world, 1);
  const SymmetricArray<std::uint64_t> total(world, 1);
  const Signals arrived(world, 1);
  tasks.register_function<Part>({partial.data(), nullptr, 0, nullptr});
  tasks.register_function<Total>({total.data(), nullptr, 0, arrived.data()});
  const auto size = static_cast<std::uint64_t>(test.size());
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const int owner = static_cast<int>(round % size);
    tasks.post<Part>({round * static_cast<std::uint64_t>(1 + test.rank())}, owner, 1);
    world.synchronize();
    tasks.quiet();
    BEELINE_CHECK_EQ(round * size * (size + 1) / 2, test.read_value(total.data()));
    BEELINE_CHECK_EQ(round, test.read_value(arrived.data()));
    world.barrier();
  }
}

std::uint64_t nodes_below(const Node& node) {
  std::uint64_t nodes = 1;
  for (std::uint32_t i = 0; i < node.children(); ++i) nodes += nodes_below(node.child(i));
  return nodes;
}

BEELINE_CASE(task, an_unbalanced_tree, 1) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<List> tasks(world, {.queues = 2, .depth = 8, .workers = 4});
  const SymmetricArray<std::uint64_t> visited(world, 1);
  tasks.register_function<Visit>({visited.data(), nullptr, 0, nullptr});
  const Node root{42, 0};
  if (test.rank() == 0) tasks.post<Visit>(root, test.size() - 1, 1);
  world.synchronize();
  tasks.quiet();
  BEELINE_CHECK_EQ(nodes_below(root), world.allreduce(test.read_value(visited.data())));
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::task_use_cases
