// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/packets: data and flag in one store, ping-pong inside one kernel.

#include "beeline/device/packets.hpp"
#include "cases/cases.hpp"
#include "cases/packet_rings.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_flag.hpp"

namespace beeline::bench {

namespace {

template <class Wanted>
struct PacketPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, PacketChannel channel,
                                      std::byte* destination, const std::byte* source, std::uint64_t bytes) const {
    const auto group = group_of<Wanted>(grid.block());
    PacketPort port(group, ctx, channel, loop.peer);
    time_rounds(group, loop, [&](std::uint64_t) {
      return round_trip(
          loop.leads, [&] { return port.send(source, bytes) == Status::ok; },
          [&] { return port.receive(destination, bytes) == Status::ok; });
    });
  }
};

/// What the groups of one message size share.
struct State {
  State(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)), rings(bench.world(), bytes),
        timed(bench) {}

  std::vector<double> time(const GroupChoice& choice, Rounds rounds) {
    return with_group(choice.kind, [&]<class Wanted>(Wanted) {
      return timed.run(choice.threads, bench.paired(), rounds, PacketPingPong<Wanted>{}, rings.channel(),
                       buffers->destination(), buffers->source(), buffers->bytes());
    });
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  RingsOfTwoKinds rings;
  TimedKernel timed;
};

Measurement measurement_of(Bench& bench, std::shared_ptr<State> state, const GroupChoice& choice) {
  Measurement measurement{.operation = "message", .method = "device/peer/packets", .bytes = state->buffers->bytes()};
  measurement.operations_per_iteration = 2;
  measurement.settings = choice.settings();
  for (const auto& setting : state->rings.settings()) measurement.settings.push_back(setting);
  measurement.time = [=](Rounds rounds) { return state->time(choice, rounds); };
  measurement.verify = verify_messages(bench, state->buffers, measurement.time, Receivers::both);
  return measurement;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto state = std::make_shared<State>(bench, bytes);
  std::vector<Measurement> all;
  const bool one_packet = bytes <= packet_payload_bytes;
  if (one_packet) all.push_back(bare_flag(bench, BareOrder::relaxed, "message", "device/peer/packets"));
  for (const GroupChoice& choice : candidate_groups(bench, bytes, packet_payload_bytes, packet_kernel_threads)) {
    all.push_back(measurement_of(bench, state, choice));
    if (one_packet) all.back().baseline = 0;
  }
  return all;
}

}  // namespace

Case packet_latency() { return {"message", "device/peer/packets", true, prepare}; }

}  // namespace beeline::bench
