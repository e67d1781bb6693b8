// SPDX-License-Identifier: Apache-2.0
// A rank is killed, during set-up or while others wait for it: every survivor soon gets an error that names it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/host/rma_ports.hpp"
#include "beeline/host/verbs_queues.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "tests/support/check.hpp"
#include "tests/support/killings.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/repetitions.hpp"

namespace beeline_test::rank_killed_test {

namespace {

using namespace beeline;

constexpr int ranks = 4;
constexpr int gpu_ranks = 2;  // processes do not share GPUs

/// The rank that is killed in a world of `size`.
constexpr int victim_of(int size) { return size / 2; }
constexpr int victim = victim_of(ranks);

void expect_survivors_name_the_victim(const std::vector<RankOutcome>& outcomes, bool on_gpu = false) {
  const int size = static_cast<int>(outcomes.size());
  Killings::count(on_gpu);
  for (int rank = 0; rank < size; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (rank == victim_of(size))
      EXPECT_EQ(SIGKILL, outcome.signal) << outcome.failure;
    else
      EXPECT_TRUE(outcome.passed()) << "rank " << rank << ": " << outcome.failure;
  }
}

/// Runs `wait`, which must soon throw an error that names the victim.
template <class Wait>
void survive(Wait wait, int killed = victim) {
  try {
    wait();
  } catch (const Error& error) {
    Killings::noticed();
    BEELINE_CHECK_CONTAINS(error.what(), join("rank ", killed, " ended without leaving the world"));
    BEELINE_CHECK_EQ(std::string(name(Status::peer_died)), name(error.code()));
    return;
  }
  throw CheckFailure("no error");
}

/// Set-up has several steps; the victim dies before, between and after some of them.
class KilledInSetUp : public ::testing::TestWithParam<int> {};

TEST_P(KilledInSetUp, SurvivorsNameIt) {
  for (int repetition = 0, end = repetitions(2); repetition < end && !HasFailure(); ++repetition) {
    const int microseconds = GetParam() + 17 * repetition;
    expect_survivors_name_the_victim(run_processes(ranks, [=](const Config& config) {
      if (config.rank != victim) return survive([&] { World::create(config)->barrier(); });
      std::unique_ptr<Bootstrap> bootstrap = join_world(config);
      std::thread killer([=] {
        usleep(static_cast<unsigned>(microseconds));
        Killings::end_this_process();
      });
      const std::unique_ptr<World> world = World::create(config, std::move(bootstrap));
      killer.join();
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(After, KilledInSetUp, ::testing::Values(0, 500, 2000, 5000));

TEST(KilledBeforeSetUp, SurvivorsNameIt) {
  expect_survivors_name_the_victim(run_processes(ranks, [](const Config& config) {
    const std::unique_ptr<Bootstrap> bootstrap = join_world(config);
    if (config.rank == victim) Killings::end_this_process();
    survive([&] { bootstrap->barrier(config.deadline_ns); });
  }));
}

struct Activity {
  const char* name;
  void (*repeat)(World&);
};

struct BarrierKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx) const {
    Barrier barrier(grid.block(), ctx);
    while (barrier.sync() == Status::ok) {
    }
  }
};

void barriers_in_kernels(World& world) {
  LaunchOptions options;
  options.waits = true;
  launch(world, options, BarrierKernel{});
  world.synchronize();
}

void staged_exchanges(World& world) {
  StagedChannel channel(world, 4096, 2);
  const SymmetricArray<std::byte> out(world, 50'000), in(world, 50'000);
  for (;;)
    channel.send_receive(out.data(), (world.rank() + 1) % world.size(), in.data(),
                         (world.rank() + world.size() - 1) % world.size(), out.bytes());
}

void hybrid_puts_to_the_victim(World& world) {
  HybridTransfers hybrid(world, {.threshold_bytes = 1, .chunk_bytes = 4096, .chunks = 2});
  const SymmetricArray<std::byte> out(world, 50'000), in(world, 50'000);
  for (;;) {
    hybrid.put(in.data(), out.data(), out.bytes(), victim_of(world.size()));
    world.check();
  }
}

void waits_on_streams(World& world) {
  const Signals signals(world, 1);
  for (std::uint64_t round = 1;; ++round) {
    world.stream().write_signal(signals.at((world.rank() + 1) % world.size()), round);
    world.stream().wait_signal(signals.data(), round);
    world.synchronize();
  }
}

struct StoreKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* area, std::size_t count) const {
    put(grid.block(), ctx, area, area + count, count, ctx.size / 2);
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// The victim dies while others store into its memory; no rank waits.
void puts_to_the_victim(World& world) {
  constexpr std::size_t count = 50'000;
  // In a mixed world, memory that kernels of host ranks can reach.
  const SymmetricArray<std::uint64_t> area(world, 2 * count, world.mixed() ? Heap::pinned : Heap::symmetric);
  for (;;) {
    launch(world, {}, StoreKernel{}, area.data(), count);
    world.synchronize();
  }
}

void stores_to_the_victim(World& world) {
  const SymmetricArray<std::uint64_t> area(world, 1000, Heap::pinned);
  volatile std::uint64_t* theirs = area.at(victim_of(world.size()));
  for (std::uint64_t value = 0;; ++value) {
    for (std::size_t i = 0; i < area.count(); ++i) theirs[i] = value;
    world.check();
  }
}

/// Writes to the next rank and waits for completions until a wait fails.
struct VerbsKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, VerbsQueuesView queues,
                                      VerbsRequest request) const {
    VerbsCompletion completion;
    do {
      if (post_send(grid.block(), queues, 0, request) != Status::ok) return;
    } while (wait_completion(grid.block(), ctx, queues, 0, completion) == Status::ok);
  }
};

/// The victim dies between a post and its completion; or the writer's wait is ended by the abort of the world.
void verbs_requests(World& world) {
  constexpr std::uint32_t bytes = 100'000;
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
  const SymmetricArray<std::byte> area(world, 2 * bytes, Heap::pinned);
  VerbsQueues queues(world, std::vector{next, previous});
  const VerbsKey mine = queues.register_memory(area.data(), area.bytes());
  world.barrier();
  const VerbsKey theirs = queues.key_of(mine, next);
  const VerbsRequest request = write_request(segment_of(world.host_context(), area.data() + bytes, bytes, theirs),
                                             segment_of(world.host_context(), area.data(), bytes, mine));
  LaunchOptions options;
  options.waits = true;
  for (;;) {
    launch(world, options, VerbsKernel{}, queues.view(), request);
    world.synchronize();
  }
}

/// Puts to the next rank until a wait fails; units of the adapters notify both ends of each put.
struct RmaKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, RmaPortsView ports, std::uint64_t* area,
                                      std::size_t count) const {
    if (grid.thread_rank() != 0) return;
    const RmaTo to{(ctx.rank + 1) % ctx.size, rma_requester | rma_completer};
    for (Status status = Status::ok; status == Status::ok;) {
      status = rma_put(Thread{}, ctx, ports.port(0), area, area + count, count, to);
      for (int notifications = 2; notifications > 0 && status == Status::ok; --notifications) {
        RmaNotification notification{};
        status = rma_wait(ctx, ports.port(0), notification);
        rma_free(ports.port(0));
      }
    }
  }
};

void rma_requests(World& world) {
  constexpr std::size_t count = 50'000;
  const SymmetricArray<std::uint64_t> area(world, 2 * count, world.mixed() ? Heap::pinned : Heap::symmetric);
  const RmaPorts ports(world);
  LaunchOptions options;
  options.waits = true;
  launch(world, options, RmaKernel{}, ports.view(), area.data(), count);
  world.synchronize();
}

constexpr Activity activities[] = {
    {"Barrier",
     [](World& world) {
       for (;;) world.barrier();
     }},
    {"KernelBarrier", barriers_in_kernels},
    {"Put", puts_to_the_victim},
    {"Store", stores_to_the_victim},
    {"VerbsPairs", verbs_requests},
    {"RmaPort", rma_requests},
    {"Staged", staged_exchanges},
    {"Hybrid", hybrid_puts_to_the_victim},
    {"Stream", waits_on_streams},
    {"Allgather",
     [](World& world) {
       for (;;) static_cast<void>(world.allgather({}));
     }},
    {"Allocation",
     [](World& world) {
       for (;;) world.free(world.allocate(1000));
     }},
};

struct Parameter {
  Activity activity;
  bool gpu;  ///< whether the victim has a GPU
};

/// The victim is killed some time after all ranks have begun, which increases with each repetition.
std::vector<RankOutcome> kill_while(const Activity& activity, int size, const Config& config, int repetition) {
  const auto body = [&](World& world) {
    const auto act = [&] {
      world.barrier();  // some may still be in it when the victim has left
      std::thread killer([=, rank = world.rank()] {
        if (rank != victim_of(size)) return;
        usleep(20'000 + 777u * static_cast<unsigned>(repetition % 50));
        Killings::end_this_process();
      });
      killer.detach();
      activity.repeat(world);
    };
    survive(act, victim_of(size));
  };
  return run_ranks(WorldKind::processes, size, body, config, 60);
}

class KilledWhile : public ::testing::TestWithParam<Parameter> {};

TEST_P(KilledWhile, SurvivorsNameIt) {
  const bool gpu = GetParam().gpu;
  std::string why;
  if (gpu && gpus_here(&why) < gpu_ranks)
    GTEST_SKIP() << "needs " << gpu_ranks << " GPUs, " << gpus_here() << " here " << why;
  Config config = test_config();
  config.device = gpu ? "auto" : "cpu";
  const int size = gpu ? gpu_ranks : ranks;
  for (int repetition = 0, end = repetitions(gpu ? 1 : 2); repetition < end && !HasFailure(); ++repetition)
    expect_survivors_name_the_victim(kill_while(GetParam().activity, size, config, repetition), gpu);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const bool gpu : {false, true})
    for (const Activity& activity : activities) all.push_back({activity, gpu});
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return join(info.param.activity.name, info.param.gpu ? "Gpu" : "");
}

INSTANTIATE_TEST_SUITE_P(Activities, KilledWhile, ::testing::ValuesIn(parameters()), parameter_name);

/// As above, if one rank has a GPU and the others have none: the victim, or another rank.
class KilledBesideAnotherKind : public ::testing::TestWithParam<Parameter> {};

TEST_P(KilledBesideAnotherKind, SurvivorsNameIt) {
  std::string why;
  if (gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  Config config = test_config();
  config.device = GetParam().gpu ? "cpu,cpu,cuda:0,cpu" : "cuda:0,cpu,cpu,cpu";
  for (int repetition = 0, end = repetitions(1); repetition < end && !HasFailure(); ++repetition)
    expect_survivors_name_the_victim(kill_while(GetParam().activity, ranks, config, repetition), GetParam().gpu);
}

std::string name_beside_another_kind(const ::testing::TestParamInfo<Parameter>& info) {
  return join(parameter_name(info), info.param.gpu ? "" : "BesideGpu");
}

INSTANTIATE_TEST_SUITE_P(Activities, KilledBesideAnotherKind, ::testing::ValuesIn(parameters()),
                         name_beside_another_kind);

}  // namespace

}  // namespace beeline_test::rank_killed_test
