// SPDX-License-Identifier: Apache-2.0
// Kernels that wait but were launched without `.waits`: the errors of all ranks say so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/pairs.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::forgotten_waits_test {

namespace {

using namespace beeline;

struct SyncKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx) const {
    static_cast<void>(grid.sync(ctx));
  }
};

struct SignalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* signals) const {
    static_cast<void>(wait(grid.block(), ctx, signals, Compare::greater, 7, 1));
  }
};

constexpr const char* remedy = "was launched without .waits = true";

class ForgottenWaits : public PairTest {
 protected:
  /// Rank 0 makes a wrong launch; rank 1 gets the error from a barrier.
  static void run(Status expected, std::initializer_list<std::string_view> words,
                  void (*launch_wrongly)(World&, std::uint64_t* signals)) {
    const auto body = [&](World& world) {
      const Signals signals(world, 1);
      if (world.rank() == 0) {
        check_error(expected, words, [&] {
          launch_wrongly(world, signals.data());
          world.synchronize();
        });
        return;
      }
      const Stopwatch stopwatch;
      while (!world.failed() && stopwatch.seconds() < 20) usleep(1000);
      check_error(Status::aborted, words, [&] { world.barrier(); });
    };
    run_pair(body, 1);
  }
};

TEST_P(ForgottenWaits, OfAGridSyncAreAnError) {
  run(Status::invalid_argument,
      {"rank 0: grid_sync in kernel beeline_test::forgotten_waits_test::SyncKernel", remedy,
       "launch it with .waits = true"},
      [](World& world, std::uint64_t*) { launch(world, {.blocks = 3, .threads = 64}, SyncKernel{}); });
}

TEST_P(ForgottenWaits, AreNamedByTheDeadline) {
  run(Status::deadline,
      {"rank 0: wait on rank 1 in kernel beeline_test::forgotten_waits_test::SignalKernel: expected > 7, observed 0",
       remedy},
      [](World& world, std::uint64_t* signals) { launch(world, {.threads = 64}, SignalKernel{}, signals); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForgottenWaits, every_pair, name_of_pair);

}  // namespace

}  // namespace beeline_test::forgotten_waits_test
