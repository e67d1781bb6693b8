// SPDX-License-Identifier: Apache-2.0
/// @file
/// GASPI's device library beside the operations that it is made of, in a ping-pong of blocks: `gpu_write_notify` beside
/// `put_signal`, with the same wait; then with GASPI's own waits and resets. Operation `gaspi_message`.

#include "beeline/device/put_get.hpp"
#include "beeline/gaspi/device.hpp"
#include "beeline/gaspi/world_endpoint.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::gaspi_kernels_cases {

namespace {

constexpr std::uint32_t sources = 0, destinations = 1, notifications = 64, queue = 1;

/// The kernels' view of the buffers: segments of an endpoint, and the flag of notification 0.
struct Ends {
  gaspi::EndpointTable table;
  std::uint64_t* flag;
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
};

struct PutSignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Ends ends) const {
    time_rounds(grid.block(), loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            put_signal(grid.block(), ctx, ends.destination, ends.source, ends.bytes, ends.flag, sequence, loop.peer);
          },
          [&] {
            return wait(grid.block(), ctx, ends.flag, Compare::greater_equal, sequence, loop.peer) == Status::ok;
          });
    });
  }
};

/// The value of the notification is the round's number, so that no reset is needed.
struct WriteNotify {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Ends ends) const {
    const gaspi::EndpointView endpoint(ctx, ends.table);
    time_rounds(grid.block(), loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            return gpu_write_notify(grid.block(), endpoint, {sources, 0}, loop.peer, {destinations, 0}, ends.bytes,
                                    {0, static_cast<std::uint32_t>(sequence)}, queue) == Status::ok;
          },
          [&] {
            return wait(grid.block(), ctx, ends.flag, Compare::greater_equal, sequence, loop.peer) == Status::ok;
          });
    });
  }
};

struct WriteAndReset {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Ends ends) const {
    const gaspi::EndpointView endpoint(ctx, ends.table);
    time_rounds(grid.block(), loop, [&](std::uint64_t) {
      return round_trip(
          loop.leads,
          [&] {
            return gpu_write_notify(grid.block(), endpoint, {sources, 0}, loop.peer, {destinations, 0}, ends.bytes,
                                    {1, 1}, queue) == Status::ok;
          },
          [&] {
            std::uint32_t id = 0;
            return notify_waitsome(grid.block(), endpoint, destinations, 1, 1, id) == Status::ok &&
                   gaspi::notify_reset(grid.block(), endpoint, destinations, id) == Status::ok;
          });
    });
  }
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)),
        endpoint(bench.world(), {2, notifications, 8}), timed(bench) {
    endpoint.set(sources, buffers->source(), bytes);
    endpoint.set(destinations, buffers->destination(), bytes);
    endpoint.publish();
  }
  /// Each batch begins with flags of 0.
  template <class Kernel>
  std::vector<double> time(const GroupChoice& choice, Rounds rounds) {
    endpoint.reset_flags();
    const Ends ends{endpoint.table(), endpoint.flag(destinations, 0), buffers->destination(), buffers->source(),
                    buffers->bytes()};
    return timed.run(choice.threads, bench.paired(), rounds, Kernel{}, ends);
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  gaspi::WorldEndpoint endpoint;
  TimedKernel timed;
};

template <class Kernel>
Measurement measurement(Bench& bench, std::shared_ptr<State> state, const GroupChoice& choice, const char* calls) {
  Measurement made = message_measurement(bench, state->buffers, Receivers::both, "device/peer/signal",
                                         [=](Rounds rounds) { return state->template time<Kernel>(choice, rounds); });
  made.operation = "gaspi_message";
  made.settings = choice.settings();
  made.settings.emplace_back("calls", calls);
  return made;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  constexpr unsigned store_bytes = 16, most_threads = 512;
  auto state = std::make_shared<State>(bench, bytes);
  const GroupChoice choice = candidate_groups(bench, bytes, store_bytes, most_threads).back();
  return {measurement<PutSignal>(bench, state, choice, "put_signal"),
          measurement<WriteNotify>(bench, state, choice, "gpu_write_notify"),
          measurement<WriteAndReset>(bench, state, choice, "gpu_write_notify, notify_waitsome, notify_reset")};
}

const ListedCases latency_cases(Command::latency, {{"gaspi_message", "device/peer/signal", true, prepare}});

}  // namespace

}  // namespace beeline::bench::gaspi_kernels_cases
