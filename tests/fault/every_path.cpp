// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/every_path.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "beeline/collectives/movement.hpp"
#include "memory/host_buffer.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// The value that a member sends in this round.
std::uint64_t value_of(const EveryObject& use, int member) {
  return 1000 * use.round + static_cast<std::uint64_t>(member);
}

void fill(EveryObject& use) {
  ++use.round;
  const std::vector<std::uint64_t> values(EveryObject::count, value_of(use, use.team.rank()));
  use.team.barrier();  // the previous step's data were read
  use.world.copy(use.out.data(), values.data(), use.out.bytes());
}

/// Checks that the first `count` elements are those of the previous member.
void check_arrived(EveryObject& use, std::size_t count = EveryObject::count) {
  std::vector<std::uint64_t> values(count);
  use.world.copy(values.data(), use.in.data(), count * sizeof(std::uint64_t));
  const std::uint64_t expected = value_of(use, use.previous);
  BEELINE_CHECK(std::all_of(values.begin(), values.end(), [=](std::uint64_t each) { return each == expected; }));
}

std::uint64_t sum_of_ranks(const EveryObject& use) {
  const auto size = static_cast<std::uint64_t>(use.team.size());
  return size * (size - 1) / 2;
}

void put_by_host(EveryObject& use) {
  if (use.world.device().is_gpu()) return;  // its CPU threads have no put
  fill(use);
  const Context& ctx = use.team.host_context();
  const auto next = static_cast<std::uint32_t>(use.next), previous = static_cast<std::uint32_t>(use.previous);
  put_signal(Thread{}, ctx, use.in.data(), use.out.data(), EveryObject::count, use.arrived.data(), use.round, next);
  if (wait(Thread{}, ctx, use.arrived.data(), Compare::equal, use.round, previous) != Status::ok) use.world.check();
  if (quiet(Thread{}, ctx) != Status::ok) use.world.check();
  check_arrived(use);
  use.team.barrier();
  std::uint64_t theirs = 0;
  if (get(Thread{}, ctx, &theirs, use.out.data(), 1, next) != Status::ok) use.world.check();
  BEELINE_CHECK_EQ(value_of(use, use.next), theirs);
}

void copy_by_host(EveryObject& use) {
  fill(use);
  use.world.copy(use.in.at(use.next), use.out.data(), use.in.bytes());
  use.team.barrier();
  check_arrived(use);
}

/// The channels by which a kernel communicates. Kernels take it by reference: of a copy, nvcc 13.0 reads a part at an
/// address that is not in local memory.
struct KernelChannels {
  CollectiveChannel collectives;
  MessageChannel messages;
  PacketChannel packets;
  CommandQueuesView queues;
  std::uint64_t *in, *out, *sums, *arrived;
  std::uint32_t next, previous;
  std::uint64_t round;
};
KernelChannels channels_of(const EveryObject& use, const CommandQueues& queues) {
  return {.collectives = use.collectives.channel(),
          .messages = use.messages.channel(),
          .packets = use.packets.channel(),
          .queues = queues.channel(),
          .in = use.in.data(),
          .out = use.out.data(),
          .sums = use.results.data(),
          .arrived = use.arrived.data(),
          .next = static_cast<std::uint32_t>(use.next),
          .previous = static_cast<std::uint32_t>(use.previous),
          .round = use.round};
}

struct PutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use,
                                      std::size_t count) const {
    put_signal(grid.block(), ctx, use.in, use.out, count, use.arrived, use.round, use.next);
    if (wait(grid.block(), ctx, use.arrived, Compare::equal, use.round, use.previous) == Status::ok)
      static_cast<void>(quiet(grid.block(), ctx));
  }
};
struct BarrierAndSumKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use, std::size_t) const {
    Session session(grid.block(), ctx, use.collectives);
    if (grid.thread_rank() == 0) use.sums[1] = ctx.rank;
    grid.block().sync();
    if (barrier(session) == Status::ok)
      static_cast<void>(allreduce(session, use.sums, use.sums + 1, 1, Reduction::sum));
  }
};
struct MessageKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use,
                                      std::size_t count) const {
    const MessageSession ends(grid.block(), ctx, use.messages);
    if (send(ends, use.out, count * sizeof(std::uint64_t), use.next) == Status::ok)
      static_cast<void>(receive(ends, use.in, count * sizeof(std::uint64_t), use.previous));
  }
};
struct PacketKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use,
                                      std::size_t count) const {
    const auto pass = [&](auto& to, auto& from) {
      if (to.send(use.out, count * sizeof(std::uint64_t)) == Status::ok)
        static_cast<void>(from.receive(use.in, count * sizeof(std::uint64_t)));
    };
    PacketPort to(grid.block(), ctx, use.packets, use.next);
    if (use.next == use.previous) return pass(to, to);
    PacketPort from(grid.block(), ctx, use.packets, use.previous);
    pass(to, from);
  }
};
struct PostKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use,
                                      std::size_t count) const {
    const CommandQueue queue = use.queues.queue(0);
    const Status posted =
        post_put_signal(grid.block(), ctx, use.in, use.out, count, use.arrived, use.round, use.next, queue);
    if (posted == Status::ok && quiet(grid.block(), ctx, queue) == Status::ok)
      static_cast<void>(wait(grid.block(), ctx, use.arrived, Compare::equal, use.round, use.previous));
  }
};

struct SendingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const KernelChannels& use,
                                      std::size_t count) const {
    const std::size_t bytes = count * sizeof(std::uint64_t);
    put_signal(grid.block(), ctx, use.in, use.out, count, use.arrived, use.round, use.next);
    const MessageSession ends(grid.block(), ctx, use.messages);
    static_cast<void>(send(ends, use.out, bytes, use.next));
    PacketPort to(grid.block(), ctx, use.packets, use.next);
    static_cast<void>(to.send(use.out, bytes));
    static_cast<void>(post_put_signal(grid.block(), ctx, use.in, use.out, count, use.arrived, use.round, use.next,
                                      use.queues.queue(0)));
  }
};

template <class Kernel, std::size_t count>
void in_kernel(EveryObject& use, const CommandQueues& queues) {
  fill(use);
  launch(use.team, {.waits = true}, Kernel{}, channels_of(use, queues), count);
  use.world.synchronize();
  check_arrived(use, count);
}
template <class Kernel, std::size_t count>
void in_kernel(EveryObject& use) {
  in_kernel<Kernel, count>(use, use.queues);
}

void barrier_and_sum_in_kernel(EveryObject& use) {
  launch(use.team, {.waits = true}, BarrierAndSumKernel{}, channels_of(use, use.queues), std::size_t{0});
  use.world.synchronize();
  std::uint64_t sum = 0;
  use.world.copy(&sum, use.results.data(), sizeof sum);
  BEELINE_CHECK_EQ(sum_of_ranks(use), sum);
}

void collective_on_stream(EveryObject& use) {
  fill(use);
  use.collectives.allreduce_on_stream(use.in.data(), use.out.data(), EveryObject::count, ElementType::uint64,
                                      Reduction::sum);
  use.world.synchronize();
  std::uint64_t sum = 0;
  use.world.copy(&sum, use.in.data() + EveryObject::count - 1, sizeof sum);
  BEELINE_CHECK_EQ(sum_of_ranks(use) + 1000 * use.round * static_cast<std::uint64_t>(use.team.size()), sum);
}

void put_on_a_stream(EveryObject& use) {
  fill(use);
  put_on_stream(use.team, use.in.data(), use.out.data(), use.in.bytes(), use.next);
  signal_on_stream(use.team, use.next, {.signal = use.arrived.data(), .value = use.round});
  wait_on_stream(use.team,
                 {.signal = use.arrived.data(), .value = use.round, .peer = static_cast<std::uint32_t>(use.previous)});
  use.world.synchronize();
  check_arrived(use);
}

struct TriggerKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, TriggerChannel channel) const {
    static_cast<void>(trigger(grid.block(), ctx, channel, 0));
  }
};
/// A tag's count increases by one with each step.
void trigger_put(EveryObject& use, Triggers& triggers) {
  constexpr std::size_t count = 512;
  fill(use);
  const auto put =
      TriggeredOperation::put(use.in.data(), use.out.data(), count, use.next).and_signal(use.arrived.data(), use.round);
  const ArmedOperation armed = triggers.arm(put, {.tag = 0, .threshold = triggers.count(0) + 1});
  launch(use.team, {}, TriggerKernel{}, triggers.channel());
  use.world.synchronize();
  static_cast<void>(triggers.wait(armed));
  wait_on_stream(use.team,
                 {.signal = use.arrived.data(), .value = use.round, .peer = static_cast<std::uint32_t>(use.previous)});
  use.world.synchronize();
  check_arrived(use, count);
}

void post_tasks(EveryObject& use) {
  ++use.round;
  std::uint64_t before = 0, after = 0;
  use.world.copy(&before, use.sum.data(), sizeof before);
  use.team.barrier();
  for (int i = 0; i < 10; ++i) use.tasks.post<AddTask>({use.round}, use.next, 0);
  use.world.synchronize();
  use.tasks.quiet();
  use.world.copy(&after, use.sum.data(), sizeof after);
  BEELINE_CHECK_EQ(before + 10 * use.round, after);
}

void stage(EveryObject& use) {
  if (use.team.size() == 1) return;  // it has no messages to itself
  fill(use);
  use.staged.send_receive(use.out.data(), use.team.world_rank(use.next), use.in.data(),
                          use.team.world_rank(use.previous), use.in.bytes());
  check_arrived(use);
}

void put_hybrid(EveryObject& use) {
  fill(use);
  use.hybrid.put(use.in.data(), use.out.data(), use.in.bytes(), use.next);
  use.team.barrier();
  check_arrived(use);
}

/// The first element that a member owns.
std::uint64_t* chunk_of(EveryObject& use, int member) {
  return use.array->data() + use.array->elements_of(use.team.world_rank(member)).front().first;
}
void copy_to_distributed_array(EveryObject& use) {
  constexpr std::size_t bytes = 4096;
  fill(use);
  use.world.copy(chunk_of(use, use.next), use.out.data(), bytes);
  use.team.barrier();
  use.world.copy(use.in.data(), chunk_of(use, use.team.rank()), bytes);
  check_arrived(use, bytes / sizeof(std::uint64_t));
}

/// Copies to the next member's part of registered memory, and returns the last element of the own part.
std::uint64_t last_copied_to(EveryObject& use, const HostBuffer& memory) {
  const std::uint32_t id = use.world.register_memory(memory.data(), memory.bytes()).id;
  use.world.copy(RegisteredPlace{id, use.team.world_rank(use.next), 0}, use.out.data(), use.out.bytes());
  use.team.barrier();
  use.world.deregister_memory(id);
  std::uint64_t last = 0;
  std::memcpy(&last, memory.data() + memory.bytes() - sizeof last, sizeof last);
  return last;
}
void copy_to_registered_memory(EveryObject& use) {
  static std::vector<std::unique_ptr<HostBuffer>> still_registered;
  fill(use);
  auto memory = std::make_unique<HostBuffer>(use.out.bytes(), use.world.device().is_gpu(), "to register");
  try {
    BEELINE_CHECK_EQ(value_of(use, use.previous), last_copied_to(use, *memory));
  } catch (const Error&) {  // other memory at its address could not be registered
    still_registered.push_back(std::move(memory));
    throw;
  }
}

void copy_to_segment(EveryObject& use) {
  fill(use);
  const Segment segment = use.world.create_segment(MemoryKind::host, use.in.bytes());
  const auto part = [&](int member) {
    return segment.parts[static_cast<std::size_t>(use.team.world_rank(member))].address;
  };
  use.world.copy(part(use.next), use.out.data(), use.in.bytes());
  use.team.barrier();
  use.world.copy(use.in.data(), part(use.team.rank()), use.in.bytes());
  use.world.destroy_segment(segment.id);
  check_arrived(use);
}

void make_teams(EveryObject& use) {
  std::vector<int> members;
  for (int member = use.team.rank() % 2; member < use.team.size(); member += 2)
    members.push_back(use.team.world_rank(member));
  const std::unique_ptr<Team> half = use.world.make_team(members);
  BEELINE_CHECK_EQ(half->size(), half->allreduce(1));
}

}  // namespace

const std::vector<Path>& every_path() {
  static const std::vector<Path> all = {
      {"Put", put_by_host, false},
      {"Copy", copy_by_host},
      {"PutInKernel", in_kernel<PutKernel, EveryObject::count>},
      {"BarrierAndSumInKernel", barrier_and_sum_in_kernel},
      {"MessageInKernel", in_kernel<MessageKernel, 40>},
      {"Packets", in_kernel<PacketKernel, 60>},
      {"CommandQueue", in_kernel<PostKernel, 2'000>},
      {"DeviceEngine", [](EveryObject& use) { in_kernel<PostKernel, 2'000>(use, use.device_queues); }},
      {"CollectiveOnStream", collective_on_stream},
      {"PutOnStream", put_on_a_stream},
      {"TriggerByEngine", [](EveryObject& use) { trigger_put(use, use.engine); }},
      {"TriggerByGuardedStream", [](EveryObject& use) { trigger_put(use, use.guarded); }},
      {"TriggerByStream", [](EveryObject& use) { trigger_put(use, use.streams); }},
      {"Tasks", post_tasks},
      {"StagedChannel", stage},
      {"Hybrid", put_hybrid},
      {"DistributedArray", copy_to_distributed_array},
      {"RegisteredMemory", copy_to_registered_memory},
      {"Segment", copy_to_segment},
      {"Teams", make_teams},
  };
  return all;
}

void use_every_path(EveryObject& use, const char* when) {
  for (const Path& path : every_path()) {
    try {
      path.step(use);
      path.step(use);
    } catch (const std::exception& error) {
      throw CheckFailure(join(path.name, " ", when, ": ", error.what()));
    }
  }
}

void send_in_vain(EveryObject& use) {
  fill(use);
  for (const CommandQueues* const queues : {&use.queues, &use.device_queues})
    launch(use.team, {.waits = true}, SendingKernel{}, channels_of(use, *queues), std::size_t{20});
  for (Triggers* const triggers : {&use.engine, &use.guarded, &use.streams}) {
    const auto put = TriggeredOperation::put(use.in.data(), use.out.data(), 512, use.next);
    static_cast<void>(triggers->arm(put, {.tag = 0, .threshold = triggers->count(0) + 1}));
    launch(use.team, {}, TriggerKernel{}, triggers->channel());
  }
  use.world.synchronize();
  for (int i = 0; i < 3; ++i) use.tasks.post<AddTask>({1}, use.next, 0);
  put_on_stream(use.team, use.in.data(), use.out.data(), use.in.bytes(), use.next);
  use.staged.send(use.out.data(), 4096, use.team.world_rank(use.next));  // one chunk
  use.world.synchronize();
}

}  // namespace beeline_test
