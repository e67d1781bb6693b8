// SPDX-License-Identifier: Apache-2.0
// Calls in kernels, triggers and long collectives of worlds on several nodes: a death ends them; kernels refuse
// operations that they do not have.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/collectives/movement.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopped_process.hpp"

namespace beeline_test::calls_across_nodes_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr int ranks = 4;
constexpr int victim = 3;  // ranks 2 and 3 are on the other node

/// Objects that ranks use when one of them dies.
struct Channels {
  World& world;
  SymmetricArray<std::uint64_t> words{world, 16}, vector{world, std::size_t{1} << 17};
  Collectives collectives{world};
  Messages messages{world};
  Triggers triggers{world, {.by = TriggeredBy::guarded_stream}};
};

enum class KernelCall { allreduce, send, receive };

struct CallingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, KernelCall call, CollectiveChannel collectives,
                                      MessageChannel messages, std::uint64_t* words) const {
    Session session(grid.block(), ctx, collectives);
    const MessageSession ends(grid.block(), ctx, messages);
    Status status = Status::ok;
    while (status == Status::ok)
      status = call == KernelCall::allreduce ? allreduce(session, words, words, 5, Reduction::bit_or)
               : call == KernelCall::send    ? send(ends, words, 40, victim)
                                             : receive(ends, words, 40, victim);
  }
};

void call_in_kernel(Channels& use, KernelCall call) {
  launch(use.world, {.waits = true}, CallingKernel{}, call, use.collectives.channel(), use.messages.channel(),
         use.words.data());
  use.world.synchronize();
}

/// Work on existing channels that a death must end.
using Work = void (*)(Channels& use);
const Work works[] = {[](Channels& use) { call_in_kernel(use, KernelCall::allreduce); },
                      [](Channels& use) { call_in_kernel(use, KernelCall::send); },
                      [](Channels& use) { call_in_kernel(use, KernelCall::receive); },
                      [](Channels& use) {
                        const auto put = TriggeredOperation::put(use.words.data(), use.words.data() + 8, 8, victim);
                        for (std::uint64_t count = 1;; ++count) {
                          const ArmedOperation armed = use.triggers.arm(put, {.tag = 0, .threshold = count});
                          use.triggers.trigger(0);
                          static_cast<void>(use.triggers.wait(armed));
                        }
                      },
                      [](Channels& use) {
                        for (;;) {
                          use.collectives.allreduce(use.vector, Reduction::sum,
                                                    {.algorithm = Algorithm::two_shot_across_nodes});
                          use.collectives.broadcast(use.vector, 1, {.algorithm = Algorithm::chain_across_nodes});
                        }
                      }};

TEST(EndOfARank, EndsCallsInKernelsTriggersAndCollectivesOnOtherNodes) {
  SKIP_WITHOUT_UCX();
  for (const Work work : works)
    expect_others_passed(victim, run_processes(
                                     ranks,
                                     [work](const Config& config) {
                                       const std::unique_ptr<World> world = World::create(config);
                                       Channels channels{*world};
                                       try {
                                         world->barrier();
                                         if (config.rank == victim) {
                                           std::this_thread::sleep_for(100ms);
                                           ::kill(::getpid(), SIGKILL);
                                         }
                                         work(channels);
                                         throw CheckFailure("no error");
                                       } catch (const Error& error) {
                                         BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
                                         BEELINE_CHECK(error.code() == Status::peer_died);
                                       }
                                       world->abort("its partner is gone");
                                     },
                                     split_config()));
}

/// The error at the deadline names a member that does not come.
TEST(AbsentRank, IsNamedByCallsInKernelsOnOtherNodes) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        Channels channels{*world};
        world->barrier();
        try {
          if (config.rank != victim) call_in_kernel(channels, KernelCall::allreduce);
          for (;; std::this_thread::sleep_for(10ms)) world->check();
        } catch (const Error& error) {  // of this rank, or of the first rank whose deadline has passed
          BEELINE_CHECK_CONTAINS(error.what(), "collective on rank 3 in kernel");
          BEELINE_CHECK_CONTAINS(error.what(), "deadline");
        }
      },
      split_config(2'000'000'000)));  // also for the set-up of UCX in four processes, on a busy machine
}

/// A device engine refuses commands that a silent rank does not complete. Its own rank goes on.
TEST(DeviceEngine, OutlastsCommandsToASilentRank) {
  SKIP_WITHOUT("sockets");
  constexpr int silent = 1;
  expect_others_passed(
      silent,
      run_processes(
          2,
          [](const Config& config) {
            const std::unique_ptr<World> world = World::create(config);
            const SymmetricArray<std::uint64_t> words(*world, 2);
            const auto pid = static_cast<std::uint64_t>(::getpid());
            const auto pids = world->allgather(std::as_bytes(std::span(&pid, 1)));
            const CommandQueueOptions by_device{.engine = EngineKind::device};
            std::optional<CommandQueues> queues(std::in_place, *world, 1, by_device);
            const auto put = [&](Team& team, const CommandQueues& by, std::uint32_t peer) {
              const CommandQueue queue = by.channel().queue(0);
              const Context& ctx = team.host_context();
              BEELINE_CHECK(post_put(Thread{}, ctx, words.data(), words.data() + 1, 1, peer, queue) == Status::ok);
            };
            world->barrier();
            if (config.rank == silent) ::raise(SIGSTOP);
            std::uint64_t stopped = 0;
            std::memcpy(&stopped, pids[silent].data(), sizeof stopped);
            await_stop(static_cast<pid_t>(stopped));
            put(*world, *queues, 0);
            for (int i = 0; i < 3; ++i) put(*world, *queues, silent);
            for (int i = 0; i < 1000 && queues->refusals().empty(); ++i) std::this_thread::sleep_for(10ms);
            BEELINE_CHECK_EQ(std::size_t{1}, queues->refusals().size());
            BEELINE_CHECK_CONTAINS(queues->refusals()[0], "refused command 2 of a queue");
            BEELINE_CHECK_CONTAINS(queues->refusals()[0], "rank 1 has not completed it for 1 s");
            BEELINE_CHECK(quiet(Thread{}, world->host_context(), queues->channel().queue(0)) ==
                          Status::invalid_argument);
            BEELINE_CHECK_EQ(std::uint64_t{3}, queues->statistics().refused);
            queues.reset();
            Team& left = world->survivors(1'000'000'000);
            BEELINE_CHECK_EQ(1, left.size());
            queues.emplace(left, 1, by_device);
            put(left, *queues, 0);
            BEELINE_CHECK(quiet(Thread{}, left.host_context(), queues->channel().queue(0)) == Status::ok);
            ::kill(static_cast<pid_t>(stopped), SIGKILL);
          },
          split_config(1'000'000'000, "sockets")));
}

/// Rank 0 stops rank 3 for 2.5 s, puts 16 MiB to it, and lets rank 2 die.
void put_to_a_stopped_rank(World& world) {
  constexpr std::size_t count = std::size_t{2} << 20;
  const SymmetricArray<std::uint64_t> to(world, count), dies(world, 1);
  std::vector<std::uint64_t> source(count, 7);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const auto pids = world.allgather(std::as_bytes(std::span(&pid, 1)));
  std::jthread continuing;
  try {
    if (world.rank() == 2) {
      static_cast<void>(wait(Thread{}, world.host_context(), dies.data(), Compare::equal, 1, 0));
      ::kill(::getpid(), SIGKILL);
    }
    if (world.rank() == 0) {
      std::uint64_t stopped = 0;
      std::memcpy(&stopped, pids[victim].data(), sizeof stopped);
      std::this_thread::sleep_for(100ms);
      ::kill(static_cast<pid_t>(stopped), SIGSTOP);
      continuing = std::jthread([stopped] {
        std::this_thread::sleep_for(2500ms);
        ::kill(static_cast<pid_t>(stopped), SIGCONT);
      });
      put(Thread{}, world.host_context(), to.data(), source.data(), count, victim);
      put_value(world.host_context(), dies.data(), std::uint64_t{1}, 2);
    }
    world.barrier();
    throw CheckFailure("no error");
  } catch (const Error& error) {
    BEELINE_CHECK_CONTAINS(error.what(), "rank 2");
  }
  std::fill(source.begin(), source.end(), 8);
  Team& team = world.survivors();
  BEELINE_CHECK_EQ(3, team.size());
  team.barrier();
  for (std::size_t i = 0; world.rank() == victim && i < count; ++i) BEELINE_CHECK_EQ(std::uint64_t{7}, to.data()[i]);
  team.barrier();
}

/// While a rank's process stands still, the others get the error of a death, though they have a long put in flight to
/// that rank. It goes on with them, and the data arrive, though their source was reused.
TEST(Sources, OfPutsToARankThatIsStoppedForAWhile) {
  SKIP_WITHOUT("sockets");
  Config all = split_config(20'000'000'000, "sockets");
  all.heap_bytes = std::size_t{64} << 20;
  expect_others_passed(
      2, run_processes(
             ranks, [](const Config& config) { put_to_a_stopped_rank(*World::create(config)); }, all, 60));
}

/// Repeats a call that times out, until this process was stopped for a second meanwhile. Returns the last status.
///   announce  tells the rank that stops this process that the calls begin
Status repeat_until_stopped(const std::function<void()>& announce, const std::function<Status()>& call) {
  using Clock = std::chrono::steady_clock;
  auto before = Clock::now();
  announce();
  for (Status status = call();; status = call()) {
    if (status != Status::timeout || Clock::now() - before >= 1s) return status;
    before = Clock::now();
  }
}

/// Stops rank 1 beyond its deadline, once it has announced its calls.
void stop_rank_1(World& world, const std::uint64_t* announced, std::uint64_t number, std::uint64_t pid) {
  BEELINE_CHECK(wait(Thread{}, world.host_context(), announced, Compare::equal, number, 1) == Status::ok);
  std::this_thread::sleep_for(20ms);
  ::kill(static_cast<pid_t>(pid), SIGSTOP);
  std::this_thread::sleep_for(1400ms);
  ::kill(static_cast<pid_t>(pid), SIGCONT);
}

/// A call whose time-out is shorter than the deadline does not end the world, also if its process stands still until
/// after the deadline.
TEST(CallsWithATimeout, BearThatTheirProcessIsStoppedBeyondTheDeadline) {
  Config config = test_config("cpu");
  config.deadline_ns = config.stream_deadline_ns = 1'000'000'000;
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        const Timeout brief{50'000'000};
        const SymmetricArray<std::uint64_t> announced(world, 1);
        auto pid = static_cast<std::uint64_t>(::getpid());
        const auto pids = world.allgather(std::as_bytes(std::span(&pid, 1)));
        std::memcpy(&pid, pids[1].data(), sizeof pid);
        const auto announce = [&](std::uint64_t number) {
          return [&, number] { put_value(world.host_context(), announced.data(), number, 0); };
        };
        if (world.rank() == 0) stop_rank_1(world, announced.data(), 1, pid);
        const auto meet = [&] { return world.barrier(brief); };
        Status status = world.rank() == 0 ? Status::timeout : repeat_until_stopped(announce(1), meet);
        while (status == Status::timeout) status = meet();
        if (world.rank() == 0) return stop_rank_1(world, announced.data(), 2, pid);
        std::atomic<bool> may_end = false;
        world.stream().enqueue([&] {
          while (!may_end) std::this_thread::sleep_for(1ms);
        });
        status = repeat_until_stopped(announce(2), [&] { return world.synchronize(brief); });
        may_end = true;
        BEELINE_CHECK(status == Status::timeout);
        world.synchronize();
      },
      config));
}

struct DifferentKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      MessageChannel messages, std::uint64_t* words, bool moves) const {
    Session session(grid.block(), ctx, channel);
    const SessionCall named{.algorithm = Algorithm::ll};  // an algorithm of one node
    BEELINE_CHECK(broadcast(session, words, words, 5, 0, named) == Status::invalid_argument);
    const MessageSession ends(grid.block(), ctx, messages);
    if (moves && ctx.rank == 0)
      static_cast<void>(send(ends, words, 8, 1));
    else if (moves)
      static_cast<void>(receive(ends, words, 16, 0));
    else
      static_cast<void>(allreduce(session, words, words, 5 + ctx.rank, Reduction::sum));
  }
};

TEST(CallsInKernelsAcrossNodes, ThatDifferAreNamed) {
  SKIP_WITHOUT_UCX();
  for (const bool moves : {false, true})
    expect_all_passed(run_processes(
        2,
        [moves](const Config& config) {
          const std::unique_ptr<World> world = World::create(config);
          Channels channels{*world};
          try {
            launch(*world, {.waits = true}, DifferentKernel{}, channels.collectives.channel(),
                   channels.messages.channel(), channels.words.data(), moves);
            world->synchronize();
            world->barrier();
            throw CheckFailure("no error");
          } catch (const Error& error) {
            BEELINE_CHECK_CONTAINS(error.what(), moves ? "16 bytes" : "5 elements");
            BEELINE_CHECK_CONTAINS(error.what(), moves ? "8 bytes" : "6 elements");
          }
        },
        split_config()));
}

}  // namespace

}  // namespace beeline_test::calls_across_nodes_test
