// SPDX-License-Identifier: Apache-2.0
// A context of a team with more members than it has entries for, and waits for an engine.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/lone_context.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr std::uint32_t members = 200, first_here = 100, elsewhere = 7, nowhere = 199;

/// Rank 0's view of a team of 200: the world's two ranks are members 100 and 101, and member 7 is rank 1 once more.
struct Crowd {
  explicit Crowd(World& world) : ctx(world.host_context()), routes(members) {
    for (std::uint32_t peer = 0; peer < members; ++peer) routes[peer] = {{PeerAccess::refused, 0}, 1, DeviceKind::gpu};
    routes[first_here] = {{PeerAccess::direct, 0}, 0, DeviceKind::host};
    routes[first_here + 1] = {{PeerAccess::direct, 1}, 1, DeviceKind::host};
    routes[elsewhere] = {{PeerAccess::direct, 1}, 1, DeviceKind::host};
    table = {nullptr, nullptr, routes.data()};
    ctx.size = members;
    ctx.places = 2;
    ctx.rank = first_here;
    ctx.first_place = first_here;
    ctx.direct_places = 3;
    ctx.set_routes(&table);
  }
  Context ctx;
  RouteTable table{};
  std::vector<MemberRoute> routes;
};

TEST(Routes, LeadToMembersBeyondThePlacesOfAContext) {
  expect_passed_on_cpus(2, [](World& world) {
    const SymmetricArray<std::uint64_t> words(world, 4);
    const std::uint64_t value = 41;
    if (world.rank() == 0) {
      const Crowd crowd(world);
      const Context& ctx = crowd.ctx;
      BEELINE_CHECK(put(Thread{}, ctx, words.data(), &value, 1, first_here + 1) == Status::ok);
      BEELINE_CHECK(put_value(ctx, words.data() + 1, value + 1, elsewhere) == Status::ok);
      BEELINE_CHECK(atomic_add(ctx, words.data() + 2, 43, first_here + 1) == Status::ok);
      BEELINE_CHECK(put_value(ctx, words.data() + 3, value + 3, first_here) == Status::ok);
      BEELINE_CHECK(ctx.at(words.data(), elsewhere) == words.at(1));
      BEELINE_CHECK(ctx.kind_of(elsewhere) == DeviceKind::host && ctx.kind_of(nowhere) == DeviceKind::gpu);
      BEELINE_CHECK_EQ(1u, ctx.world_rank(elsewhere));
      BEELINE_CHECK(has_atomics(ctx, words.data(), elsewhere) && !has_atomics(ctx, words.data(), nowhere));
      BEELINE_CHECK_EQ(value + 3, words.data()[3]);
    }
    world.barrier();
    for (std::uint64_t i = 0; i < 3 && world.rank() == 1; ++i) BEELINE_CHECK_EQ(value + i, words.data()[i]);
    world.barrier();
    const Crowd crowd(world);
    if (world.rank() == 0) {
      BEELINE_CHECK(put_value(crowd.ctx, words.data(), value, nowhere) == Status::unreachable);
      check_error(Status::unreachable, {"rank 0: put on rank 1 refused: no route leads to rank 1"},
                  [&] { world.check(); });
      BEELINE_CHECK(put_value(crowd.ctx, words.data(), value, members) == Status::invalid_argument);
    } else {
      check_error(Status::aborted, {"no route leads to rank 1"}, [&] { world.barrier(); });
    }
  });
}

/// A thread is stopped between its poll and its reading of the clock: an operation that has completed meanwhile, before
/// the end of the wait, counts.
class StoppedInWait : public LoneContext {
 protected:
  /// Waits. `stop` ends the wait before its second reading of the clock; if `comes`, the operation completes then, too.
  template <class Stop>
  Status wait(const Stop& stop, bool comes) {
    std::uint32_t polls = 0;
    bool has_come = false;
    return detail::await_engine(context_, {}, [&] {
      const bool is_over = has_come;
      if (++polls == 2 * detail::polls_per_look) {
        stop();
        has_come = comes;
      }
      return is_over;
    });
  }
};

TEST_F(StoppedInWait, WhatCameBeforeTheEndCounts) {
  const auto pass_deadline = [this] { context_.deadline_ns = 0; };
  const auto abort = [this] { abort_words_[0] = 1; };
  EXPECT_EQ(Status::ok, wait(pass_deadline, true));
  EXPECT_EQ(Status::deadline, wait(pass_deadline, false));
  context_.deadline_ns = 10'000'000'000;
  EXPECT_EQ(Status::ok, wait(abort, true));
  abort_words_[0] = 0;
  EXPECT_EQ(Status::aborted, wait(abort, false));
}

/// The thread is stopped until both limits have passed: the shorter one counts.
TEST_F(StoppedInWait, ATimeoutShorterThanTheDeadlineDoesNotEndTheTeam) {
  context_.deadline_ns = 20'000'000;
  const Timeout shorter{10'000'000}, longer{30'000'000};
  const auto wait_for_engine = [this](Timeout timeout) {
    return detail::await_engine(context_, {true, timeout}, [looks = std::uint32_t{0}]() mutable {
      if (++looks == 2 * detail::polls_per_look) std::this_thread::sleep_for(std::chrono::milliseconds(40));
      return false;
    });
  };
  const auto wait_for_word = [this](Timeout timeout) {
    return poll_until(context_, Awaited{Operation::barrier, 0, 1, 1}, timeout,
                      [looks = std::uint32_t{0}](std::uint64_t&) mutable {
                        if (++looks == 2 * detail::polls_per_look)
                          std::this_thread::sleep_for(std::chrono::milliseconds(40));
                        return false;
                      });
  };
  EXPECT_EQ(Status::timeout, wait_for_engine(shorter));
  EXPECT_EQ(Status::deadline, wait_for_engine(longer));
  EXPECT_EQ(Status::timeout, wait_for_word(shorter));
  EXPECT_EQ(0u, claims_) << "no failed wait is recorded";
  EXPECT_EQ(Status::deadline, wait_for_word(longer));
  EXPECT_NE(0u, claims_);
}

}  // namespace

}  // namespace beeline_test
