// SPDX-License-Identifier: Apache-2.0
// Calls in kernels and triggers of worlds that span nodes: a death ends them, and what kernels do not have is refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "beeline/beeline.hpp"
#include "beeline/collectives/movement.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr int ranks = 4;
constexpr int victim = 3;  // ranks 2 and 3 are on the other node

/// What ranks use when one dies.
struct Channels {
  World& world;
  SymmetricArray<std::uint64_t> words{world, 16};
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

/// Work on channels, made before, that a death must end.
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
                      }};

TEST(EndOfARank, EndsCallsInKernelsAndTriggersOnOtherNodes) {
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

struct BroadcastKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      std::uint64_t* words) const {
    Session session(grid.block(), ctx, channel);
    static_cast<void>(broadcast(session, words, words, 5, 0));
  }
};

/// A collective that kernels have by loads and stores only.
TEST(CallsInKernelsAcrossNodes, AreRefusedWithTheReason) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_processes(
      2,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        const SymmetricArray<std::uint64_t> words(*world, 16);
        const Collectives collectives(*world);
        launch(*world, {.waits = true}, BroadcastKernel{}, collectives.channel(), words.data());
        check_error(Status::unreachable, {"broadcast", "loads and stores do not reach rank"},
                    [&] { world->synchronize(); });
      },
      split_config()));
}

}  // namespace

}  // namespace beeline_test
