// SPDX-License-Identifier: Apache-2.0
// What a program compiled with BEELINE_CHECKED refuses.
#define BEELINE_CHECKED
#include <gtest/gtest.h>

#include "beeline/device/context.hpp"

namespace beeline {

namespace {

TEST(CallerCheckDeathTest, PeersAreRanksOfTheTeam) {
  Context ctx{};
  ctx.slot_shift = min_slot_shift;
  ctx.size = 2;
  ctx.distances[1] = 1;
  int word = 0;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&word) + (std::uintptr_t{1} << min_slot_shift),
            reinterpret_cast<std::uintptr_t>(ctx.at(&word, 1)));
  EXPECT_EQ(1u, ctx.world_rank(1));
  EXPECT_DEATH(static_cast<void>(ctx.at(&word, 2)), "beeline: at is called without peer < size");
  EXPECT_DEATH(static_cast<void>(ctx.world_rank(64)), "peer < size");
}

}  // namespace

}  // namespace beeline
