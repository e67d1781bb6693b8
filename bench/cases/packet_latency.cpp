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

std::vector<Measurement> prepare(Session& session, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(session, bytes);
  auto rings = std::make_shared<PacketRings>(session.world(), bytes);
  auto timed = std::make_shared<TimedKernel>(session);
  // A packet carries 8 bytes; up to two of them a lane, a warp is done before a block has met.
  const GroupChoice choice = choose_group(session, bytes, 8, 2);
  const auto time = [=, &session](Rounds rounds) {
    return with_group(choice.kind, [&]<class Wanted>(Wanted) {
      return timed->run(choice.threads, session.paired(), rounds, PacketPingPong<Wanted>{}, rings->channel(),
                        buffers->destination(), buffers->source(), bytes);
    });
  };
  Measurement measurement{.operation = "message", .method = "device/peer/packets", .bytes = bytes};
  measurement.operations_per_iteration = 2;
  measurement.settings = choice.settings();
  for (const auto& setting : rings->settings()) measurement.settings.push_back(setting);
  measurement.time = time;
  measurement.verify = verify_messages(session, buffers, time, Receivers::both);
  std::vector<Measurement> all;
  if (bytes <= 8) {  // what one packet carries
    all.push_back(bare_flag(session, BareOrder::relaxed, "message", "device/peer/packets"));
    measurement.baseline = 0;
  }
  all.push_back(std::move(measurement));
  return all;
}

}  // namespace

Case packet_latency() { return {"message", "device/peer/packets", true, prepare}; }

}  // namespace beeline::bench
