// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/packets128: lines of 120 bytes of data and 8 of flag; ping-pong, and message after message one way.

#include "beeline/host/packets.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

namespace {

constexpr const char* method = "device/peer/packets128";
constexpr unsigned thread_bytes = 16;   // of a line
constexpr unsigned most_threads = 512;  // by the kernels' registers

template <class Wanted>
struct LinePingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, LL128Channel channel,
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

/// The receiver answers the last message of a batch.
struct LineFlood {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, LL128Channel channel,
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

/// A channel of two kinds, as those of packets: slots of 4 KB for what fits, of 64 KB otherwise.
class LineRings {
 public:
  /// Collective.
  LineRings(World& world, std::uint64_t bytes) : rings_(world, bytes <= small ? small : large, depth) {}

  [[nodiscard]] const LL128Channel& channel() const { return rings_.channel(); }

 private:
  static constexpr std::size_t small = 4 << 10, large = 64 << 10;
  static constexpr std::uint32_t depth = 64;
  LL128Rings rings_;
};

/// What the groups of one message size share.
struct State {
  State(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), rings(bench.world(), bytes), buffers(std::make_shared<MessageBuffers>(bench, bytes)),
        timed(bench) {}

  template <class Kernel>
  std::vector<double> time(const GroupChoice& choice, Rounds rounds, Kernel kernel) {
    return timed.run(choice.threads, bench.paired(), rounds, kernel, rings.channel(), buffers->destination(),
                     static_cast<const std::byte*>(buffers->source()), buffers->bytes());
  }

  Bench& bench;
  LineRings rings;
  std::shared_ptr<MessageBuffers> buffers;
  TimedKernel timed;
};

/// A warp, or a block of whole warps: lines need them.
std::vector<GroupChoice> groups(const Bench& bench, std::uint64_t bytes) {
  std::vector<GroupChoice> choices = candidate_groups(bench, bytes, thread_bytes, most_threads);
  std::erase_if(choices, [](const GroupChoice& choice) { return choice.threads % 32 != 0; });
  require(!choices.empty(), Status::unavailable, "packets of 128 bytes need whole warps: ask for 32 threads or more");
  return choices;
}

Measurement measurement_of(const std::shared_ptr<State>& state, const char* operation, const GroupChoice& choice) {
  Measurement measurement{.operation = operation, .method = method, .bytes = state->buffers->bytes()};
  measurement.settings = choice.settings();
  const LL128Channel& channel = state->rings.channel();
  measurement.settings.emplace_back("slot_bytes", std::uint64_t{channel.slot_bytes()});
  measurement.settings.emplace_back("depth", std::uint64_t{channel.depth});
  return measurement;
}

std::vector<Measurement> prepare_latency(Bench& bench, std::uint64_t bytes) {
  auto state = std::make_shared<State>(bench, bytes);
  std::vector<Measurement> all;
  for (const GroupChoice& choice : groups(bench, bytes)) {
    Measurement measurement = measurement_of(state, "message", choice);
    measurement.operations_per_iteration = 2;
    measurement.time = [=](Rounds rounds) {
      return choice.kind == GroupKind::warp ? state->time(choice, rounds, LinePingPong<Warp>{})
                                            : state->time(choice, rounds, LinePingPong<Block>{});
    };
    measurement.verify = verify_messages(bench, state->buffers, measurement.time, Receivers::both);
    all.push_back(std::move(measurement));
  }
  return all;
}

std::vector<Measurement> prepare_bandwidth(Bench& bench, std::uint64_t bytes) {
  auto state = std::make_shared<State>(bench, bytes);
  const GroupChoice choice{GroupKind::block, groups(bench, bytes).back().threads};
  Measurement measurement = measurement_of(state, "put", choice);
  measurement.unit = Unit::gigabytes_per_second;
  measurement.time = [=](Rounds rounds) { return state->time(choice, rounds, LineFlood{}); };
  measurement.verify = verify_messages(bench, state->buffers, measurement.time, Receivers::second);
  return {measurement};
}

}  // namespace

Case packets128_latency() { return {"message", method, true, prepare_latency}; }
Case packets128_bandwidth() { return {"put", method, true, prepare_bandwidth}; }

}  // namespace beeline::bench
