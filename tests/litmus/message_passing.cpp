// SPDX-License-Identifier: Apache-2.0
// Message passing: a reader that sees the flag sees the data; between two ranks, a kernel and a CPU thread, in a chain.
#include <type_traits>

#include "tests/litmus/rounds.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

struct PassingArguments {
  std::uint64_t *source, *data;  ///< [groups, cells, words]; data of round r is r
  std::uint64_t* flags;          ///< [groups, cells]
  std::uint64_t* onward;         ///< [groups, cells] the second signal of a chain
  std::uint64_t* turns;          ///< [ranks, groups]
  Outcomes* outcomes;
  std::uint64_t rounds;
  std::uint32_t groups, cells, words;
  Passing passing;
};

BEELINE_HOST_DEVICE constexpr bool is_fenced(Passing passing) {
  return passing == Passing::fence || passing == Passing::quiet;
}

/// Puts a cell's data at `peer` without announcing it.
template <class Group>
BEELINE_HOST_DEVICE void put_cell(const Group& group, const Context& ctx, const PassingArguments& a, std::size_t cell,
                                  std::uint64_t round, std::uint32_t peer) {
  std::uint64_t* source = a.source + cell * a.words;
  for (std::uint32_t word = group.thread_rank(); word < a.words; word += group.size()) source[word] = round;
  group.sync();
  if (a.passing == Passing::put_signal)
    put_signal(group, ctx, a.data + cell * a.words, source, a.words, a.flags + cell, round, peer);
  else if (a.passing != Passing::withheld)
    put(group, ctx, a.data + cell * a.words, source, a.words, peer);
}

template <class Group>
BEELINE_HOST_DEVICE void send_cell(const Group& group, const Context& ctx, const PassingArguments& a, std::size_t cell,
                                   std::uint64_t round, std::uint32_t peer) {
  put_cell(group, ctx, a, cell, round, peer);
  if (a.passing == Passing::put_signal) return;
  if (!is_fenced(a.passing)) {
    const Order order = a.passing == Passing::relaxed ? Order::relaxed : Order::memory;
    signal(group, ctx, a.flags + cell, round, peer, order);
    return;
  }
  if (a.passing == Passing::quiet)
    static_cast<void>(quiet(group, ctx));
  else
    group.sync();
  if (group.thread_rank() != 0) return;
  if (a.passing == Passing::fence) fence();
  put_value(ctx, a.flags + cell, round, peer);
}

/// Reads a cell's flag once. If the flag is set, the cell's data have arrived.
BEELINE_HOST_DEVICE inline bool has_arrived(const PassingArguments& a, std::size_t cell, std::uint64_t round) {
  if (a.passing == Passing::put_signal || a.passing == Passing::withheld)
    return beeline::test(a.flags + cell, Compare::greater_equal, round);
  if (detail::load_signal(a.flags + cell, Order::relaxed) < round) return false;
  if (is_fenced(a.passing)) fence();
  return true;
}

template <class Group>
BEELINE_HOST_DEVICE Status await_cell(const Group& group, const Context& ctx, const PassingArguments& a,
                                      std::size_t cell, std::uint64_t round, std::uint32_t peer) {
  const std::uint64_t* flag = a.flags + cell;
  if (!is_fenced(a.passing)) {
    const Order order = a.passing == Passing::relaxed ? Order::relaxed : Order::memory;
    return wait(group, ctx, flag, Compare::greater_equal, round, peer, Timeout::none(), order);
  }
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    status = wait(Thread{}, ctx, flag, Compare::greater_equal, round, peer, Timeout::none(), Order::relaxed);
    fence();
  }
  return agree(group, status);
}

/// Counts this thread's words of a cell that has arrived.
template <class Group>
BEELINE_HOST_DEVICE void count_cell(const Group& group, const PassingArguments& a, std::size_t cell,
                                    std::uint64_t round, Outcomes& mine) {
  for (std::uint32_t word = group.thread_rank(); word < a.words; word += group.size()) {
    ++mine.instances;
    if (a.data[cell * a.words + word] != round) ++mine.forbidden;
  }
}

/// One round in both directions. A thread checks each cell directly after sending its own, when the peer may be
/// sending, and again when all cells have been sent.
template <class Group>
BEELINE_HOST_DEVICE Status pass_round(const Group& group, const Context& ctx, const PassingArguments& a,
                                      std::size_t first, std::uint64_t round, Outcomes& mine) {
  const std::uint32_t peer = 1 - ctx.rank;
  for (std::size_t cell = first; cell < first + a.cells; ++cell) {
    send_cell(group, ctx, a, cell, round, peer);
    if constexpr (std::is_same_v<Group, Thread>) {
      if (!has_arrived(a, cell, round)) continue;
      count_cell(group, a, cell, round, mine);
      ++mine.overlapped;
    }
  }
  for (std::size_t cell = first; cell < first + a.cells; ++cell) {
    const Status status = await_cell(group, ctx, a, cell, round, peer);
    if (status != Status::ok) return status;
    count_cell(group, a, cell, round, mine);
  }
  return Status::ok;
}

template <class Group>
BEELINE_HOST_DEVICE Status pass_rounds(const Group& group, const Context& ctx, const PassingArguments& a,
                                       std::uint32_t index) {
  const MeetingPlace place{a.turns, a.groups, index};
  Outcomes mine{};
  Status status = Status::ok;
  for (std::uint64_t round = 1; round <= a.rounds && status == Status::ok; ++round) {
    status = pass_round(group, ctx, a, std::size_t{index} * a.cells, round, mine);
    if (status == Status::ok) status = meet(group, ctx, place, round);
  }
  add_outcomes(a.outcomes, mine);
  return status;
}

template <GroupKind kind>
struct PassingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, PassingArguments a) const {
    static_cast<void>(pass_rounds(group_of<kind>(grid), ctx, a, place_of<kind>(grid).index));
  }
};

struct ChainKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, PassingArguments a) const {
    const Thread thread;
    const std::uint32_t index = grid.thread_rank();
    const MeetingPlace place{a.turns, a.groups, index};
    Outcomes mine{};
    for (std::uint64_t round = 1; round <= a.rounds; ++round)
      if (pass_on(thread, ctx, a, std::size_t{index} * a.cells, round, mine) != Status::ok ||
          meet(thread, ctx, place, round) != Status::ok)
        break;
    add_outcomes(a.outcomes, mine);
  }

  BEELINE_HOST_DEVICE static Status pass_on(const Thread& thread, const Context& ctx, const PassingArguments& a,
                                            std::size_t first, std::uint64_t round, Outcomes& mine) {
    const std::uint32_t next = (ctx.rank + 1) % ctx.size, previous = (ctx.rank + ctx.size - 1) % ctx.size;
    for (std::size_t cell = first; cell < first + a.cells; ++cell) {
      put_cell(thread, ctx, a, cell, round, (ctx.rank + 2) % ctx.size);
      signal(thread, ctx, a.flags + cell, round, next);
    }
    for (std::size_t cell = first; cell < first + a.cells; ++cell) {
      const Status status = wait(thread, ctx, a.flags + cell, Compare::greater_equal, round, previous);
      if (status != Status::ok) return status;
      signal(thread, ctx, a.onward + cell, round, next);
    }
    for (std::size_t cell = first; cell < first + a.cells; ++cell) {
      const Status status = wait(thread, ctx, a.onward + cell, Compare::greater_equal, round, previous);
      if (status != Status::ok) return status;
      count_cell(thread, a, cell, round, mine);
    }
    return Status::ok;
  }
};

/// The memory that a test uses.
class PassingMemory {
 public:
  PassingMemory(World& world, const Shape& shape, Heap heap)
      : source_(world, shape.all_words(), heap), data_(world, shape.all_words(), heap),
        flags_(world, shape.all_cells(), heap), onward_(world, shape.all_cells(), heap),
        turns_(world, static_cast<std::size_t>(world.size()) * shape.groups, heap), shape_(shape) {}
  [[nodiscard]] PassingArguments arguments(Passing passing, std::uint64_t instances) const {
    return {source_.data(),           data_.data(),  flags_.data(), onward_.data(), turns_.data(), nullptr,
            shape_.rounds(instances), shape_.groups, shape_.cells,  shape_.words,   passing};
  }

 private:
  SymmetricArray<std::uint64_t> source_, data_, flags_, onward_, turns_;
  Shape shape_;
};

}  // namespace

Outcomes pass_messages(World& world, Passing passing, GroupKind kind, std::uint64_t instances) {
  const Shape shape = kind == GroupKind::thread ? shape_of_threads(world) : shape_of_blocks(world);
  const PassingMemory memory(world, shape, Heap::symmetric);
  const PassingArguments arguments = memory.arguments(passing, instances);
  if (kind == GroupKind::thread) return launch_and_count(world, shape, PassingKernel<GroupKind::thread>{}, arguments);
  return launch_and_count(world, shape, PassingKernel<GroupKind::block>{}, arguments);
}

Outcomes pass_messages_to_a_cpu(World& world, Passing passing, std::uint64_t instances) {
  // Each access of a GPU to host memory takes long, so a warp has 32 of them in flight.
  const Shape shape{1, 32, 1, 512, world.device().is_gpu() ? 32u : 1u};
  const PassingMemory memory(world, shape, Heap::pinned);
  PassingArguments arguments = memory.arguments(passing, instances);
  const SymmetricArray<Outcomes> counted(world, 1);  // in memory on which the kernel has atomics
  Outcomes outcomes{};
  if (world.rank() == 0) {
    arguments.outcomes = counted.data();
    launch(world, options_of(shape), PassingKernel<GroupKind::block>{}, arguments);
    world.synchronize();
    world.copy(&outcomes, counted.data(), sizeof outcomes);
  } else {
    arguments.outcomes = &outcomes;
    if (pass_rounds(Thread{}, world.host_context(), arguments, 0) != Status::ok) world.check();
  }
  world.barrier();
  return outcomes;
}

Outcomes pass_in_a_chain(World& world, bool withheld, std::uint64_t instances) {
  const Shape shape = shape_of_threads(world);
  const PassingMemory memory(world, shape, Heap::symmetric);
  return launch_and_count(world, shape, ChainKernel{},
                          memory.arguments(withheld ? Passing::withheld : Passing::relaxed, instances));
}

}  // namespace beeline_test
