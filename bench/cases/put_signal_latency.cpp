// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/signal: the kernel stores in place, then releases a signal; ping-pong inside one kernel.

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

namespace {

template <class Wanted>
struct PutSignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* arrived,
                                      std::byte* destination, const std::byte* source, std::uint64_t bytes) const {
    const auto group = group_of<Wanted>(grid.block());
    time_rounds(group, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            put_signal(group, ctx, destination, source, bytes, arrived, sequence, loop.peer);
            return true;
          },
          [&] { return wait(group, ctx, arrived, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

std::vector<Measurement> prepare(Session& session, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(session, bytes);
  auto signals = std::make_shared<SymmetricArray<PaddedWord>>(session.world(), 1);
  auto timed = std::make_shared<TimedKernel>(session);
  // Stores are 16 bytes wide; up to four of them a lane, a warp is done before a block has met.
  const GroupChoice choice = choose_group(session, bytes, 16, 4);
  const auto time = [=, &session](Rounds rounds) {
    return with_group(choice.kind, [&]<class Wanted>(Wanted) {
      return timed->run(choice.threads, session.paired(), rounds, PutSignalPingPong<Wanted>{}, &signals->data()->value,
                        buffers->destination(), buffers->source(), bytes);
    });
  };
  Measurement measurement{.operation = "message", .method = "device/peer/signal", .bytes = bytes};
  measurement.operations_per_iteration = 2;
  measurement.settings = choice.settings();
  measurement.time = time;
  measurement.verify = verify_messages(session, buffers, time, Receivers::both);
  return {measurement};
}

}  // namespace

Case put_signal_latency() { return {"message", "device/peer/signal", true, prepare}; }

}  // namespace beeline::bench
