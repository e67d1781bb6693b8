// SPDX-License-Identifier: Apache-2.0
// Several worlds in one program, at the same time or one after the other: each has its own addresses, memory, kernels
// and failures, and any of them may end first.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// Each rank puts its number to the next rank.
struct PassOn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* inbox, const std::uint64_t* outbox,
                                      std::uint64_t* arrived, std::uint64_t round) const {
    const std::uint32_t next = (ctx.rank + 1) % ctx.size, previous = (ctx.rank + ctx.size - 1) % ctx.size;
    put_signal(grid.block(), ctx, inbox, outbox, 1, arrived, round, next);
    static_cast<void>(wait(grid.block(), ctx, arrived, Compare::equal, round, previous));
  }
};

/// A world with the memory that PassOn needs.
class Ring {
 public:
  explicit Ring(World& world) : world_(world), inbox_(world, 1), outbox_(world, 1), arrived_(world, 1) {}

  /// Starts a round; `key` distinguishes worlds.
  void start(std::uint64_t key) {
    ++round_;
    const std::uint64_t mine = number(key, world_.rank());
    world_.copy(outbox_.data(), &mine, sizeof mine);
    LaunchOptions options;
    options.waits = true;
    launch(world_, options, PassOn{}, inbox_.data(), outbox_.data(), arrived_.data(), round_);
  }
  void finish(std::uint64_t key) {
    world_.synchronize();
    std::uint64_t got = 0;
    world_.copy(&got, inbox_.data(), sizeof got);
    BEELINE_CHECK_EQ(number(key, (world_.rank() + world_.size() - 1) % world_.size()), got);
    world_.barrier();
  }

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t key, int rank) const {
    return 1000 * key + 10 * round_ + static_cast<std::uint64_t>(rank);
  }
  World& world_;
  SymmetricArray<std::uint64_t> inbox_, outbox_, arrived_;
  std::uint64_t round_ = 0;
};

/// Makes this rank's next world.
using MakeWorld = std::function<std::unique_ptr<World>()>;
using Body = void (*)(World& world, const MakeWorld& make);

bool overlap(const World& a, const World& b) {
  const auto bytes = [](const World& world) {
    return (std::size_t{1} << world.config().slot_shift) * static_cast<std::size_t>(world.size());
  };
  const std::byte *first = a.context().range, *second = b.context().range;
  return first < second + bytes(b) && second < first + bytes(a);
}

/// Three worlds exist; either of the two later ones may end first.
template <bool first_goes_first>
void at_once(World& base, const MakeWorld& make) {
  std::unique_ptr<World> one = make(), two = make();
  BEELINE_CHECK(!overlap(*one, *two) && !overlap(*one, base) && !overlap(*two, base));
  auto ring_one = std::make_unique<Ring>(*one), ring_two = std::make_unique<Ring>(*two);
  for (std::uint64_t round = 0; round < 3; ++round) {
    ring_one->start(1);
    ring_two->start(2);
    one->barrier();
    ring_two->finish(2);
    const SymmetricArray<int> between(base, 100);
    BEELINE_CHECK_EQ(-1, one->owner_of(between.data()));
    BEELINE_CHECK_EQ(base.rank(), base.owner_of(between.data()));
    ring_one->finish(1);
  }
  auto &going = first_goes_first ? one : two, &staying = first_goes_first ? two : one;
  auto &ring_going = first_goes_first ? ring_one : ring_two, &ring_staying = first_goes_first ? ring_two : ring_one;
  ring_staying->start(3);  // runs while the other world ends
  ring_going.reset();
  going.reset();
  ring_staying->finish(3);
  going = make();  // beside an older world
  ring_going = std::make_unique<Ring>(*going);
  ring_going->start(4);
  ring_staying->start(5);
  ring_going->finish(4);
  ring_staying->finish(5);
}

void after_each_other(World&, const MakeWorld& make) {
  for (std::uint64_t key = 1; key <= 3; ++key) {
    const std::unique_ptr<World> world = make();
    Ring ring(*world);
    ring.start(key);
    ring.finish(key);
  }
}

/// One world aborts; the other worlds continue.
void one_aborts(World& base, const MakeWorld& make) {
  const std::unique_ptr<World> doomed = make(), sound = make();
  Ring ring(*sound);
  doomed->barrier();
  base.barrier();  // all have left the aborted world's last barrier
  if (doomed->rank() == 0) doomed->abort("this world only");
  if (doomed->rank() != 0)
    check_error(Status::peer_died, {"rank 0", "this world only"}, [&] {
      for (;;) doomed->barrier();
    });
  ring.start(1);
  ring.finish(1);
  base.barrier();
  BEELINE_CHECK(doomed->failed() && !sound->failed() && !base.failed());
}

constexpr int ranks = 3, most_worlds = 3;

void run(WorldKind kind, Devices devices, Body body) {
  std::string why;
  const int gpus = devices == Devices::cpu ? 0 : gpus_here(&why);
  if (devices != Devices::cpu && gpus == 0) GTEST_SKIP() << "no GPU: " << why;
  if (devices != Devices::cpu && kind == WorldKind::processes && gpus < ranks)
    GTEST_SKIP() << ranks << " processes need a GPU each, " << gpus << " here";
  Config config = test_config();
  if (devices == Devices::cpu) config.device = "cpu";
  std::vector<std::vector<std::unique_ptr<Bootstrap>>> bootstraps;  // for ranks that are threads
  for (int world = 0; world < most_worlds; ++world) bootstraps.push_back(make_thread_bootstraps(ranks));
  expect_all_passed(run_ranks(
      kind, ranks,
      [&](World& base) {
        std::size_t made = 0;
        body(base, [&, kind]() {
          if (kind == WorldKind::processes) return World::create(base.config());
          return World::create(base.config(), std::move(bootstraps[made++][static_cast<std::size_t>(base.rank())]));
        });
      },
      config));
}

class TwoWorlds : public ::testing::TestWithParam<std::tuple<WorldKind, Devices>> {
 protected:
  static void run(Body body) { beeline_test::run(std::get<0>(GetParam()), std::get<1>(GetParam()), body); }
};

TEST_P(TwoWorlds, AtOnceAndTheFirstGoesFirst) { run(at_once<true>); }
TEST_P(TwoWorlds, AtOnceAndTheSecondGoesFirst) { run(at_once<false>); }
TEST_P(TwoWorlds, AfterEachOther) { run(after_each_other); }
TEST_P(TwoWorlds, AnAbortEndsOnlyItsOwn) { run(one_aborts); }

std::string shape_name(const ::testing::TestParamInfo<std::tuple<WorldKind, Devices>>& info) {
  const WorldKind kind = std::get<0>(info.param);
  const Devices devices = std::get<1>(info.param);
  return std::string(kind == WorldKind::threads ? "threads_" : "processes_") +
         (devices == Devices::cpu ? "cpu" : "gpus");
}

INSTANTIATE_TEST_SUITE_P(Shapes, TwoWorlds,
                         ::testing::Combine(::testing::Values(WorldKind::threads, WorldKind::processes),
                                            ::testing::Values(Devices::cpu, Devices::gpus)),
                         shape_name);

}  // namespace

}  // namespace beeline_test
