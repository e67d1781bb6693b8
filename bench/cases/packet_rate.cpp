// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/ll: how many messages per second many blocks of one rank send, each through its own channel.

#include "beeline/device/packets.hpp"
#include "cases/cases.hpp"
#include "cases/packet_rings.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench::packet_rate_cases {

namespace {

/// The messages of one launch.
struct Burst {
  BlockTimes* times;
  const PacketChannel* channels;  ///< [blocks]
  std::byte* destination;         ///< [blocks, bytes]
  const std::byte* source;
  std::uint64_t bytes;
  std::uint32_t messages, peer;
  bool sends;
};

template <class Wanted>
struct PacketBurst {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Burst burst) const {
    const auto group = group_of<Wanted>(grid.block());
    PacketPort port(group, ctx, burst.channels[grid.block_rank()], burst.peer);
    std::byte* destination = burst.destination + grid.block_rank() * burst.bytes;
    const std::byte* source = burst.source + grid.block_rank() * burst.bytes;
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < burst.messages; ++i) {
      const Status status = burst.sends ? port.send(source, burst.bytes) : port.receive(destination, burst.bytes);
      if (status != Status::ok) return;
    }
    // The receiver's acknowledgement of the last message.
    if ((burst.sends ? port.receive(destination, 0) : port.send(source, 0)) != Status::ok) return;
    if (group.thread_rank() == 0) burst.times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

/// One channel for each block, and the array of handles for kernels.
class Channels {
 public:
  /// Collective.
  Channels(World& world, std::uint64_t bytes, unsigned blocks) : handles_(world, blocks) {
    for (unsigned i = 0; i < blocks; ++i) {
      rings_.emplace_back(world, bytes, rate_ring_depth(bytes));
      world.copy(handles_.data() + i, &rings_.back().channel(), sizeof(PacketChannel));
    }
  }

  [[nodiscard]] const PacketChannel* handles() const { return handles_.data(); }
  [[nodiscard]] Settings settings() const {
    const PacketChannel& first = rings_.front().channel();
    return {{"slot_bytes", std::uint64_t{first.slot_bytes()}}, {"depth", std::uint64_t{first.depth}}};
  }

 private:
  SymmetricArray<PacketChannel> handles_;
  std::vector<PacketRings> rings_;
};

/// The senders of one measurement, one for each block.
struct Senders {
  GroupChoice group;
  unsigned blocks;
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes_in, std::shared_ptr<Channels> channels_in, const Senders& senders_in)
      : bench(bench_in), bytes(bytes_in), channels(std::move(channels_in)), senders(senders_in),
        buffers(std::make_shared<MessageBuffers>(bench, bytes * senders.blocks)), timed(bench, senders.blocks) {}

  std::vector<double> time(Rounds rounds) {
    const Burst burst{timed.times(), channels->handles(), buffers->destination(), buffers->source(),
                      bytes,         rounds.iterations,   bench.peer(),           bench.leads()};
    return time_batches(rounds, [&] {
      return with_group(senders.group.kind, [&]<class Wanted>(Wanted) {
        return timed.run({senders.blocks, senders.group.threads}, bench.paired(), PacketBurst<Wanted>{}, burst);
      });
    });
  }

  Bench& bench;
  std::uint64_t bytes;
  std::shared_ptr<Channels> channels;
  Senders senders;
  std::shared_ptr<MessageBuffers> buffers;
  TimedGrid timed;
};

std::vector<Senders> senders_of(const Bench& bench, std::uint64_t bytes) {
  std::vector<Senders> all;
  for (const GroupChoice& group : candidate_groups(bench, bytes, packet_payload_bytes, packet_kernel_threads)) {
    const unsigned resident = with_group(group.kind, [&]<class Wanted>(Wanted) {
      return resident_everywhere<PacketBurst<Wanted>, Burst>(bench, group.threads);
    });
    for (unsigned blocks : block_sweep(bench, resident)) all.push_back({group, blocks});
  }
  require(!all.empty(), Status::no_resource, "no block of senders could be resident on every rank");
  return all;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  bench.require_alike();
  const std::vector<Senders> sweep = senders_of(bench, bytes);
  unsigned most_blocks = 1;
  for (const Senders& senders : sweep) most_blocks = std::max(most_blocks, senders.blocks);
  auto channels = std::make_shared<Channels>(bench.world(), bytes, most_blocks);
  std::vector<Measurement> all;
  for (const Senders& senders : sweep) {
    auto state = std::make_shared<State>(bench, bytes, channels, senders);
    Measurement measurement{.operation = "message_rate", .method = "device/peer/ll", .bytes = bytes};
    measurement.unit = Unit::million_messages_per_second;
    measurement.most_iterations = 1'000'000;
    measurement.operations_per_iteration = senders.blocks;
    measurement.settings = senders.group.settings();
    measurement.settings.back().second = std::uint64_t{senders.blocks};
    measurement.settings.emplace_back("senders", std::uint64_t{senders.blocks});
    for (const auto& setting : channels->settings()) measurement.settings.push_back(setting);
    measurement.time = [=](Rounds rounds) { return state->time(rounds); };
    measurement.verify = verify_messages(bench, state->buffers, measurement.time, Receivers::second);
    all.push_back(std::move(measurement));
  }
  return all;
}

const ListedCases rate_cases(Command::rate, {{"message_rate", "device/peer/ll", true, prepare}});

}  // namespace

}  // namespace beeline::bench::packet_rate_cases
