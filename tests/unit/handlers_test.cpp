// SPDX-License-Identifier: Apache-2.0
// Handlers of bytes, like those of aml.h: each message is handled once at its rank, and a barrier also waits for
// messages that handlers have sent.

#include "common/handlers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "beeline/host/launch.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// What a rank's handlers have counted.
struct Seen {
  std::uint64_t messages, bytes, faults, returned;
};

struct Receive;
struct Return;
using List = apps::HandlerList<Receive, Return>;

/// Counts what comes back.
struct Return {
  static constexpr const char* name = "return";
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const apps::Sender<List>&, std::uint32_t,
                                      const std::byte* data, std::size_t, void* object) const {
    if (group.thread_rank() == 0) static_cast<Seen*>(object)->returned += static_cast<std::uint64_t>(*data);
  }
};

/// Counts the messages that arrive, and sends a byte back.
struct Receive {
  static constexpr const char* name = "receive";
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const apps::Sender<List>& sender,
                                      std::uint32_t from, const std::byte* data, std::size_t bytes,
                                      void* object) const {
    bool is_wrong = false;
    for (std::size_t i = group.thread_rank(); i < bytes; i += group.size())
      is_wrong |= data[i] != static_cast<std::byte>(from + bytes + i);
    const bool any = group.any(is_wrong);
    const std::byte one{1};
    const Status status = sender.send<Return>(group, ctx, &one, sizeof one, from);
    if (group.thread_rank() != 0) return;
    Seen& seen = *static_cast<Seen*>(object);
    ++seen.messages, seen.bytes += bytes;
    if (any || status != Status::ok) ++seen.faults;
  }
};

constexpr std::size_t most_bytes = 600;

/// Sends messages of growing length to all ranks.
struct SendAll {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, apps::Sender<List> sender, std::byte* data,
                                      std::uint32_t rounds) const {
    const auto& block = grid.block();
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::size_t bytes = (round * 61 + 1) % most_bytes;
      block.sync();
      for (std::size_t i = block.thread_rank(); i < bytes; i += block.size())
        data[i] = static_cast<std::byte>(ctx.rank + bytes + i);
      block.sync();
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
        if (sender.send<Receive>(block, ctx, data, bytes, rank) != Status::ok) return;
    }
  }
};

class Handling : public ::testing::TestWithParam<const char*> {};

TEST_P(Handling, EachMessageOnceAndWhatHandlersSend) {
  constexpr int ranks = 2;
  if (const std::string why = missing_gpus(GetParam(), ranks); !why.empty()) GTEST_SKIP() << why;
  Config config = test_config();
  config.device = GetParam();
  expect_all_passed(run_ranks(
      WorldKind::threads, ranks,
      [](World& world) {
        const SymmetricArray<Seen> seen(world, 1);
        const SymmetricArray<std::byte> data(world, most_bytes);
        apps::Handlers<List> handlers(world, most_bytes);
        handlers.register_handler<Receive>(seen.data());
        handlers.register_handler<Return>(seen.data());
        constexpr std::uint32_t rounds = 20;  // so few that a reply always finds a free cell
        std::uint64_t bytes = 0;
        for (std::uint32_t round = 0; round < rounds; ++round) bytes += (round * 61 + 1) % most_bytes;
        for (std::uint64_t turn = 1; turn <= 3; ++turn) {
          launch(world, {.threads = 64, .waits = true}, SendAll{}, handlers.sender(), data.data(), rounds);
          world.synchronize();
          handlers.barrier();
          Seen now{};
          world.copy(&now, seen.data(), sizeof now);
          EXPECT_EQ(now.messages, turn * ranks * rounds);
          EXPECT_EQ(now.bytes, turn * ranks * bytes);
          EXPECT_EQ(now.returned, turn * ranks * rounds);
          EXPECT_EQ(now.faults, 0u);
          world.barrier();
        }
      },
      config));
}

INSTANTIATE_TEST_SUITE_P(On, Handling, ::testing::Values("cpu", "auto", "cuda:0"), [](const auto& on) {
  return on.index == 0 ? "cpu" : on.index == 1 ? "gpus" : "one_gpu";
});

}  // namespace

}  // namespace beeline_test
