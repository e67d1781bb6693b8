// SPDX-License-Identifier: Apache-2.0
// Time-outs of the host's blocking calls: they harm nothing, the work continues, and a later call finds it done. Only a
// deadline ends the work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/pairs.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::timeouts_test {

namespace {

using namespace beeline;

constexpr Timeout brief{30'000'000}, ample{60'000'000'000};
constexpr double brief_s = 0.03;

struct AwaitKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* signal, int* result) const {
    if (wait(grid.block(), ctx, signal, Compare::equal, 1) == Status::ok && grid.block().thread_rank() == 0)
      *result = 42;
  }
};

/// Objects on which rank 0 waits, while rank 1 acts only when rank 0 tells it to.
struct Scene {
  explicit Scene(World& in) : world(in), signal(in, 1), bell(in, 1, Heap::pinned), result(in, 1) {}

  /// Rank 0 lets rank 1 continue. By a signal between CPUs, since a barrier may be pending.
  void ring() const { static_cast<void>(beeline::signal(Thread{}, world.host_context(), bell.data(), 1, 1)); }
  void await_bell() const {
    BEELINE_CHECK(wait(Thread{}, world.host_context(), bell.data(), Compare::equal, 1, 0) == Status::ok);
  }
  /// Ends the wait of rank 0's kernel.
  void answer() const {
    world.stream().write_signal(signal.at(0), 1);
    world.synchronize();
  }
  [[nodiscard]] int read_result() const {
    int value = 0;
    world.copy(&value, result.data(), sizeof value);
    return value;
  }

  World& world;
  Signals signal, bell;
  SymmetricArray<int> result;
};

/// Checks that `call` times out, immediately and after a short time.
void expect_timeouts(const std::function<Status(Timeout)>& call) {
  BEELINE_CHECK(call(Timeout::test()) == Status::timeout);
  const Stopwatch stopwatch;
  BEELINE_CHECK(call(brief) == Status::timeout);
  BEELINE_CHECK(stopwatch.seconds() >= brief_s);
}

/// Checks that `call` times out until rank 1 has done its part, and then succeeds.
void expect_continuation(const Scene& scene, const std::function<Status(Timeout)>& call) {
  expect_timeouts(call);
  BEELINE_CHECK(!scene.world.failed());
  scene.ring();
  BEELINE_CHECK(call(ample) == Status::ok);
}

class TimeoutsOf : public PairTest {
 protected:
  static void run(const std::function<void(Scene&)>& body, double deadline_s = 20) {
    const auto with_scene = [&](World& world) {
      Scene scene(world);
      body(scene);
    };
    run_pair(with_scene, deadline_s);
  }
};

TEST_P(TimeoutsOf, SynchronizeFindItLater) {
  run([](Scene& scene) {
    World& world = scene.world;
    if (world.rank() == 0) {
      launch(world, {.threads = 64, .waits = true}, AwaitKernel{}, scene.signal.data(), scene.result.data());
      expect_continuation(scene, [&](Timeout timeout) { return world.synchronize(timeout); });
      BEELINE_CHECK_EQ(42, scene.read_result());
      BEELINE_CHECK(world.synchronize(Timeout::test()) == Status::ok);
    } else {
      scene.await_bell();
      scene.answer();
    }
    world.barrier();
  });
}

TEST_P(TimeoutsOf, EventsFindThemLater) {
  run([](Scene& scene) {
    World& world = scene.world;
    if (world.rank() == 0) {
      launch(world, {.threads = 64, .waits = true}, AwaitKernel{}, scene.signal.data(), scene.result.data());
      const auto event = world.stream().make_event();
      world.stream().record(*event);
      expect_continuation(scene, [&](Timeout timeout) { return world.synchronize(*event, timeout); });
      BEELINE_CHECK_EQ(42, scene.read_result());
    } else {
      scene.await_bell();
      scene.answer();
    }
    world.barrier();
  });
}

TEST_P(TimeoutsOf, BarriersContinueThem) {
  run([](Scene& scene) {
    World& world = scene.world;
    if (world.rank() == 0) {
      expect_timeouts([&](Timeout timeout) { return world.barrier(timeout); });
      check_error(Status::invalid_argument, {"rank 0's last barrier timed out"},
                  [&] { static_cast<void>(world.allocate(8)); });
      expect_continuation(scene, [&](Timeout timeout) { return world.barrier(timeout); });
    } else {
      scene.await_bell();
      world.barrier();
    }
    for (int round = 0; round < 3; ++round) world.barrier();
    BEELINE_CHECK_EQ(2u, world.allgather({}).size());
  });
}

TEST_P(TimeoutsOf, BarriersOfTeamsContinueThem) {
  run([](Scene& scene) {
    const auto team = scene.world.make_team({0, 1});
    if (scene.world.rank() == 0) {
      expect_timeouts([&](Timeout timeout) { return team->barrier(timeout); });
      check_error(Status::invalid_argument, {"rank 0's last barrier timed out"},
                  [&] { static_cast<void>(team->allgather({})); });
      expect_continuation(scene, [&](Timeout timeout) { return team->barrier(timeout); });
    } else {
      scene.await_bell();
      team->barrier();
    }
    BEELINE_CHECK_EQ(2u, team->allgather({}).size());
    scene.world.barrier();
  });
}

constexpr std::size_t chunk_bytes = 1000, slots = 2, message_bytes = 10'500;

std::vector<std::byte> message() {
  std::vector<std::byte> bytes(message_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

/// The receiver calls first, then the sender, whose message exceeds the slots.
TEST_P(TimeoutsOf, StagedMessagesContinueThem) {
  run([](Scene& scene) {
    World& world = scene.world;
    StagedChannel channel(world, chunk_bytes, slots);
    std::vector<std::byte> sent = message(), received(message_bytes);
    if (world.rank() == 0) {
      expect_continuation(
          scene, [&](Timeout timeout) { return channel.receive(received.data(), received.size(), 1, timeout); });
      BEELINE_CHECK(received == sent);
      expect_timeouts([&](Timeout timeout) { return channel.send(sent.data(), sent.size(), 1, timeout); });
      check_error(Status::invalid_argument, {"is to be continued"}, [&] { channel.send(sent.data(), 10, 1); });
      world.barrier();
      BEELINE_CHECK(channel.send(sent.data(), sent.size(), 1, ample) == Status::ok);
    } else {
      scene.await_bell();
      channel.send(sent.data(), sent.size(), 0);
      world.barrier();
      channel.receive(received.data(), received.size(), 0);
      BEELINE_CHECK(received == sent);
    }
    world.barrier();
  });
}

/// One side of an exchange completes long before the other, and is not repeated.
TEST_P(TimeoutsOf, ExchangesContinueThem) {
  run([](Scene& scene) {
    World& world = scene.world;
    StagedChannel channel(world, chunk_bytes, slots);
    std::vector<std::byte> sent = message(), received(message_bytes);
    const int other = 1 - world.rank();
    for (int round = 0; round < 3; ++round) {
      std::memset(received.data(), 0, received.size());
      if (world.rank() == 0) {
        expect_timeouts([&](Timeout timeout) {
          return channel.send_receive(sent.data(), other, received.data(), other, message_bytes, timeout);
        });
        world.barrier();
        Status status = Status::timeout;
        while (status == Status::timeout)
          status = channel.send_receive(sent.data(), other, received.data(), other, message_bytes, Timeout::test());
        BEELINE_CHECK(status == Status::ok);
      } else {
        world.barrier();
        channel.receive(received.data(), received.size(), other);
        channel.send(sent.data(), sent.size(), other);
      }
      BEELINE_CHECK(received == sent);
      world.barrier();
    }
  });
}

void await_failure(const World& world) {
  const Stopwatch stopwatch;
  while (!world.failed() && stopwatch.seconds() < 20) usleep(1000);
  BEELINE_CHECK(world.failed());
}

TEST_P(TimeoutsOf, SynchronizeThatAreLongerThanTheDeadlineEndByIt) {
  run(
      [](Scene& scene) {
        if (scene.world.rank() != 0) return await_failure(scene.world);
        launch(scene.world, {.threads = 64, .waits = true}, AwaitKernel{}, scene.signal.data(), scene.result.data());
        check_error(Status::deadline, {"rank 0: wait on any rank in kernel beeline_test::timeouts_test::AwaitKernel"},
                    [&] { static_cast<void>(scene.world.synchronize(ample)); });
      },
      1);
}

TEST_P(TimeoutsOf, BarriersThatAreLongerThanTheDeadlineEndByIt) {
  run(
      [](Scene& scene) {
        if (scene.world.rank() != 0) return await_failure(scene.world);
        check_error(Status::deadline, {"rank 0: barrier on rank 1"},
                    [&] { static_cast<void>(scene.world.barrier(ample)); });
      },
      1);
}

INSTANTIATE_TEST_SUITE_P(Host, TimeoutsOf, every_pair, name_of_pair);

}  // namespace

}  // namespace beeline_test::timeouts_test
