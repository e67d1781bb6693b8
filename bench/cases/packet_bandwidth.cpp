// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/packets, message after message one way through one block; the receiver answers the last of a batch.

#include "beeline/device/packets.hpp"
#include "cases/cases.hpp"
#include "cases/packet_rings.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

namespace {

struct PacketFlood {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, PacketChannel channel,
                                      std::byte* destination, const std::byte* source, std::uint64_t bytes) const {
    PacketPort port(grid.block(), ctx, channel, loop.peer);
    const std::uint64_t batch = loop.rounds.iterations, first = loop.first + loop.rounds.warm_up;
    time_rounds(grid.block(), loop, [&](std::uint64_t sequence) {
      const bool answered = sequence == first || (sequence > first && (sequence - first) % batch == 0);
      const Status status = loop.leads ? port.send(source, bytes) : port.receive(destination, bytes);
      if (status != Status::ok) return false;
      if (!answered) return true;
      return (loop.leads ? port.receive(destination, 0) : port.send(source, 0)) == Status::ok;
    });
  }
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto rings = std::make_shared<RingsOfTwoKinds>(bench.world(), bytes);
  auto timed = std::make_shared<TimedKernel>(bench);
  GroupChoice choice = candidate_groups(bench, bytes, packet_payload_bytes, packet_kernel_threads).back();
  if (choice.kind != GroupKind::host_team) choice.kind = GroupKind::block;  // whatever its size
  Measurement measurement{.operation = "put", .method = "device/peer/packets", .bytes = bytes};
  measurement.unit = Unit::gigabytes_per_second;
  measurement.settings = choice.settings();
  for (const auto& setting : rings->settings()) measurement.settings.push_back(setting);
  measurement.time = [=, &bench](Rounds rounds) {
    return timed->run(choice.threads, bench.paired(), rounds, PacketFlood{}, rings->channel(), buffers->destination(),
                      static_cast<const std::byte*>(buffers->source()), bytes);
  };
  measurement.verify = verify_messages(bench, buffers, measurement.time, Receivers::second);
  return {measurement};
}

}  // namespace

Case packet_bandwidth() { return {"put", "device/peer/packets", true, prepare}; }

}  // namespace beeline::bench
