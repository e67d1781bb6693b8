// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/signal, in the opposite direction: rank 0's threads load data from rank 1.

#include "beeline/device/put_get.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench::get_bandwidth_cases {

namespace {

struct GetFlood {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, std::byte* destination,
                                      const std::byte* source, std::uint64_t bytes, std::uint32_t messages) const {
    const auto& block = grid.block();
    const Share share = share_of(bytes, grid.block_rank(), grid.blocks());
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < messages; ++i) {
      static_cast<void>(get(block, ctx, destination + share.offset, source + share.offset, share.bytes, 1));
      // Drops cached data of the last message, as if the peer had written the next message meanwhile.
      fence();
    }
    block.sync();
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes, unsigned blocks)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)), timed(bench, blocks) {}

  std::vector<double> time(const GridShape& shape, Rounds rounds) {
    return time_batches(rounds, [&] {
      return timed.run(shape, bench.leads(), GetFlood{}, timed.times(), buffers->destination(),
                       static_cast<const std::byte*>(buffers->source()), buffers->bytes(), rounds.iterations);
    });
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  TimedGrid timed;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  const std::vector<GridShape> shapes =
      resident_shapes<GetFlood, BlockTimes*, std::byte*, const std::byte*, std::uint64_t, std::uint32_t>(bench);
  auto state = std::make_shared<State>(bench, bytes, shapes.back().blocks);
  std::vector<Measurement> all;
  for (const GridShape& shape : shapes) {
    all.push_back(message_measurement(bench, state->buffers, Receivers::first, "device/peer/signal",
                                      [=](Rounds rounds) { return state->time(shape, rounds); }));
    all.back().settings = shape.settings(bench.world().device().is_gpu());
  }
  return all;
}

const ListedCases bandwidth_cases(Command::bandwidth, {{"get", "device/peer/signal", true, prepare}});

}  // namespace

}  // namespace beeline::bench::get_bandwidth_cases
