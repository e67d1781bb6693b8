// SPDX-License-Identifier: Apache-2.0
// Addresses in the slot of a rank on another node, where no memory is mapped: copies accept them; other calls refuse
// them and name the rank.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::unmapped_memory_test {

namespace {

using namespace beeline;

TEST(UnmappedMemory, OfAnotherNodeIsNoEndOfAnOperation) {
  SKIP_WITHOUT_UCX();
  Config config = test_config("cpu");
  config.split_nodes = 2;
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [](World& world) {
        const SymmetricArray<int> data(world, 64);
        const Signals signals(world, 1);
        const int next = 1 - world.rank();
        int* const there = world.at(data.data(), next);
        const Thread thread;
        for (const std::uint32_t peer : {0u, 1u}) {  // by loads and stores, and by an engine
          const std::string to = join("rank 0: put", peer == 0 ? "" : " on rank 1", " refused: source: 0x");
          for (const bool signals_too : {false, true}) {
            const std::unique_ptr<Team> team = world.make_team({0, 1});
            if (world.rank() == 0) {
              const Context& ctx = team->host_context();
              const Status status = signals_too
                                        ? put_signal(thread, ctx, data.data(), there, 64, signals.data(), 1, peer)
                                        : put(thread, ctx, data.data(), there, 64, peer);
              BEELINE_CHECK(status == Status::invalid_argument);
              check_error(Status::invalid_argument, {to, "is memory of rank 1 on another node", "World::copy"},
                          [&] { team->barrier(); });
            }
            world.barrier();
          }
        }
        int mine[64] = {};
        Collectives collectives(world);
        Messages messages(world);
        const auto refused = [next](const char* end, const auto& call) {
          check_error(Status::invalid_argument,
                      {"the ", end, ": 0x", join(" is memory of rank ", next, " on another node")}, call);
        };
        refused("source", [&] { collectives.allreduce(mine, std::span(there, 64)); });
        refused("destination", [&] { collectives.broadcast(std::span(there, 64), 0); });
        refused("source", [&] { messages.send(std::span(there, 64), next); });
        world.copy(mine, there, sizeof mine);
        world.copy(there, mine, sizeof mine);
      },
      config, 60));
}

}  // namespace

}  // namespace beeline_test::unmapped_memory_test
