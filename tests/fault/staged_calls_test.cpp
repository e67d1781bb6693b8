// SPDX-License-Identifier: Apache-2.0
// Calls of a StagedChannel that do not agree are refused before any memory is touched, and no message is lost.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::staged_calls_test {

namespace {

using namespace beeline;

constexpr std::size_t chunk_bytes = 1000, bytes = 3500;
constexpr std::uint32_t slots = 2;  // a message of `bytes` does not fit
constexpr Timeout at_once = Timeout::test();

/// A channel between two ranks, and messages that both know.
struct Scene {
  explicit Scene(World& on) : world(on), channel(on, chunk_bytes, slots) {}

  [[nodiscard]] int other() const { return 1 - world.rank(); }
  /// Receives the message that the other rank must have sent.
  void expect(const std::vector<std::byte>& message) {
    std::vector<std::byte> received(message.size());
    channel.receive(received.data(), received.size(), other());
    BEELINE_CHECK(received == message);
  }

  World& world;
  StagedChannel channel;
  std::vector<std::byte> first = pattern(1, bytes), second = pattern(2, bytes), received = pattern(3, bytes);
};

class StagedCalls : public ::testing::TestWithParam<WorldKind> {
 protected:
  static void run(const std::function<void(Scene&)>& body) {
    Config config = test_config();
    config.device = "cpu";
    expect_all_passed(run_ranks(
        GetParam(), 2,
        [&](World& world) {
          Scene scene(world);
          body(scene);
          world.barrier();
        },
        config, 60));
  }
};

TEST_P(StagedCalls, ChannelsThatDifferAreRefused) {
  run([](Scene& scene) {
    const std::size_t mine = scene.world.rank() == 0 ? 1000 : 2000;
    check_error(Status::invalid_argument, {"staged channels differ: 1000 bytes in 2 slots, and on rank 1 2000 in 2"},
                [&] { const StagedChannel differs(scene.world, mine, 2); });
    check_error(Status::invalid_argument, {"1000 bytes in 1 slots, and on rank 1 1000 in 2"},
                [&] { const StagedChannel differs(scene.world, 1000, scene.world.rank() == 0 ? 1 : 2); });
    const StagedChannel agreed(scene.world, 1000, 2);
  });
}

TEST_P(StagedCalls, OtherLengthsAreNamedAndLoseNothing) {
  run([](Scene& scene) {
    if (scene.world.rank() == 0) {
      for (const std::size_t sent : {bytes, std::size_t{10}, std::size_t{0}})
        scene.channel.send(scene.first.data(), sent, 1);
      return;
    }
    for (const std::size_t sent : {bytes, std::size_t{10}, std::size_t{0}}) {
      for (const std::size_t expected : {sent + 1, sent + 2 * chunk_bytes, bytes - sent}) {
        std::vector<std::byte> untouched(expected), memory(expected);
        check_error(Status::invalid_argument,
                    {join("rank 1: a receive of ", expected, " bytes from rank 0, whose next message has ", sent, ":")},
                    [&] { scene.channel.receive(memory.data(), expected, 0); });
        BEELINE_CHECK(memory == untouched);
      }
      scene.expect(pattern(1, sent));
    }
  });
}

TEST_P(StagedCalls, AnExchangeSendsItsOwnMessageWhereLengthsDiffer) {
  run([](Scene& scene) {
    if (scene.world.rank() == 0) {
      check_error(Status::invalid_argument,
                  {join("rank 0: a receive of ", bytes, " bytes from rank 1, whose next message has ", bytes - 1, ":")},
                  [&] { scene.channel.send_receive(scene.first.data(), 1, scene.received.data(), 1, bytes); });
      BEELINE_CHECK(scene.received == pattern(3, bytes));
      scene.second.pop_back();
      scene.expect(scene.second);
    } else {
      BEELINE_CHECK(scene.channel.send(scene.second.data(), bytes - 1, 0, at_once) == Status::timeout);
      scene.expect(scene.first);
      scene.channel.send(scene.second.data(), bytes - 1, 0);
    }
  });
}

/// Each rank refuses the other's message, so that neither has room for its own.
TEST_P(StagedCalls, LengthsThatDifferAreNamedAtTheDeadline) {
  Config config = test_config();
  config.device = "cpu";
  config.deadline_ns = 500'000'000;
  const auto body = [](World& world) {
    Scene scene(world);
    const std::size_t mine = world.rank() == 0 ? bytes : bytes - 1, theirs = 2 * bytes - 1 - mine;
    const int other = scene.other();
    std::string text;
    try {
      scene.channel.send_receive(scene.first.data(), other, scene.received.data(), other, mine);
    } catch (const Error& error) {
      text = error.what();
    }
    BEELINE_CHECK_CONTAINS(
        text, join("; a receive of ", mine, " bytes from rank ", other, ", whose next message has ", theirs));
  };
  expect_all_passed(run_ranks(GetParam(), 2, body, config, 60));
}

/// The receive side belongs to another call: the exchange is refused and sends nothing.
TEST_P(StagedCalls, AnExchangeThatIsRefusedSendsNothing) {
  run([](Scene& scene) {
    StagedChannel& channel = scene.channel;
    if (scene.world.rank() == 0) {
      BEELINE_CHECK(channel.receive(scene.received.data(), bytes, 1, at_once) == Status::timeout);
      check_error(Status::invalid_argument,
                  {"a send_receive of 3500 bytes", "while a receive of 3500 bytes from rank 1", "is to be continued"},
                  [&] { channel.send_receive(scene.first.data(), 1, scene.received.data(), 1, bytes); });
      check_error(Status::invalid_argument, {"3500 bytes at a null address"}, [&] { channel.send(nullptr, bytes, 1); });
      scene.world.barrier();
      scene.world.barrier();
      channel.receive(scene.received.data(), bytes, 1);
      BEELINE_CHECK(scene.received == scene.second);
      check_error(Status::invalid_argument, {"3500 bytes at a null address"},
                  [&] { channel.send_receive(scene.first.data(), 1, nullptr, 1, bytes); });
      channel.send(scene.second.data(), bytes, 1);
    } else {
      scene.world.barrier();
      BEELINE_CHECK(channel.receive(scene.received.data(), bytes, 0, at_once) == Status::timeout);
      scene.world.barrier();
      channel.send(scene.second.data(), bytes, 0);
      channel.receive(scene.received.data(), bytes, 0);
      BEELINE_CHECK(scene.received == scene.second);
    }
  });
}

/// After a send_receive that timed out, a send or receive with its memory and length does not continue it.
TEST_P(StagedCalls, OnlyTheSameCallContinuesAnExchange) {
  run([](Scene& scene) {
    StagedChannel& channel = scene.channel;
    if (scene.world.rank() == 0) {
      std::byte* const into = scene.received.data();
      BEELINE_CHECK(channel.send_receive(scene.first.data(), 1, into, 1, bytes, at_once) == Status::timeout);
      const auto is_refused = [](const char* call, const auto& make) {
        check_error(Status::invalid_argument, {call, "while a send_receive of 3500 bytes from", "is to be continued"},
                    make);
      };
      is_refused("a send of 3500", [&] { channel.send(scene.first.data(), bytes, 1); });
      is_refused("a receive of 3500", [&] { channel.receive(into, bytes, 1); });
      is_refused("a send_receive of 3499", [&] { channel.send_receive(scene.first.data(), 1, into, 1, bytes - 1); });
      is_refused("a send_receive of 3500", [&] { channel.send_receive(scene.second.data(), 1, into, 1, bytes); });
      scene.world.barrier();
      channel.send_receive(scene.first.data(), 1, into, 1, bytes);
      BEELINE_CHECK(scene.received == scene.second);
    } else {
      scene.world.barrier();
      channel.send_receive(scene.second.data(), 0, scene.received.data(), 0, bytes);
      BEELINE_CHECK(scene.received == scene.first);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, StagedCalls, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& kind) { return kind.param == WorldKind::threads ? "Threads" : "Processes"; });

}  // namespace

}  // namespace beeline_test::staged_calls_test
