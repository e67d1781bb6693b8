// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/ll and device/peer/ll128: data and flag in one store, by the protocols LL and LL128; ping-pong
/// inside one kernel, and message after message one way.

#include "beeline/device/packets.hpp"

#include <optional>

#include "cases/cases.hpp"
#include "cases/packet_rings.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_ping_pong.hpp"

namespace beeline::bench::packets_cases {

namespace {

template <class Protocol>
inline constexpr bool is_ll128 = std::is_same_v<Protocol, LL128>;
template <class Protocol>
inline constexpr const char* method_of = is_ll128<Protocol> ? "device/peer/ll128" : "device/peer/ll";

template <class Wanted, class Protocol>
struct PacketPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, ProtocolChannel<Protocol> channel,
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
template <class Protocol>
struct PacketFlood {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, ProtocolChannel<Protocol> channel,
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

/// Data that the groups of one message size share.
template <class Protocol>
struct State {
  State(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)), near(bench),
        timed(bench, near.is_member() ? near.team() : bench.world()) {
    bench.together(
        [&] {
          if (near.is_member()) rings.emplace(near.team(), bytes);
        },
        "packets");
  }

  template <class Kernel>
  std::vector<double> time(const GroupChoice& choice, Rounds rounds, Kernel kernel) {
    const auto channel = rings ? rings->channel() : ProtocolChannel<Protocol>{};
    return timed.run(choice.threads, bench.paired(), rounds, kernel, channel, buffers->destination(),
                     static_cast<const std::byte*>(buffers->source()), buffers->bytes());
  }

  std::vector<double> ping_pong(const GroupChoice& choice, Rounds rounds) {
    const auto with = [&]<class Wanted>(Wanted) { return time(choice, rounds, PacketPingPong<Wanted, Protocol>{}); };
    if constexpr (is_ll128<Protocol>)
      return choice.kind == GroupKind::warp ? with(Warp{}) : with(Block{});
    else
      return with_group(choice.kind, with);
  }

  [[nodiscard]] Settings settings(const GroupChoice& choice) const {
    Settings settings = choice.settings();
    if (!rings) return settings;
    for (const auto& setting : rings->settings()) settings.push_back(setting);
    return settings;
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  NearTeam near;
  std::optional<RingsOfTwoKinds<Protocol>> rings;  ///< on the ranks that reach rank 0 by loads and stores
  TimedKernel timed;
};

/// Groups of LL128 are warps or blocks of whole warps, because whole warps store lines.
template <class Protocol>
std::vector<GroupChoice> groups(const Bench& bench, std::uint64_t bytes) {
  constexpr unsigned store_bytes = is_ll128<Protocol> ? 16 : packet_payload_bytes;
  std::vector<GroupChoice> choices = candidate_groups(bench, bytes, store_bytes, packet_kernel_threads);
  if (is_ll128<Protocol>) std::erase_if(choices, [](const GroupChoice& choice) { return choice.threads % 32 != 0; });
  require(!choices.empty(), Status::unavailable, "packets of 128 bytes need whole warps: ask for 32 threads or more");
  return choices;
}

template <class Protocol>
std::vector<Measurement> prepare_latency(Bench& bench, std::uint64_t bytes) {
  auto state = std::make_shared<State<Protocol>>(bench, bytes);
  std::vector<Measurement> all;
  const bool one_packet = !is_ll128<Protocol> && bytes <= packet_payload_bytes;
  if (one_packet) all.push_back(bare_flag(bench, BareOrder::relaxed, "message", method_of<Protocol>));
  for (const GroupChoice& choice : groups<Protocol>(bench, bytes)) {
    all.push_back(message_measurement(bench, state->buffers, Receivers::both, method_of<Protocol>,
                                      [=](Rounds rounds) { return state->ping_pong(choice, rounds); }));
    all.back().settings = state->settings(choice);
    if (one_packet) all.back().baseline = 0;
  }
  return all;
}

template <class Protocol>
std::vector<Measurement> prepare_bandwidth(Bench& bench, std::uint64_t bytes) {
  auto state = std::make_shared<State<Protocol>>(bench, bytes);
  GroupChoice choice = groups<Protocol>(bench, bytes).back();
  if (choice.kind != GroupKind::host_team) choice.kind = GroupKind::block;  // whatever its number of threads
  Measurement measurement =
      message_measurement(bench, state->buffers, Receivers::second, method_of<Protocol>,
                          [=](Rounds rounds) { return state->time(choice, rounds, PacketFlood<Protocol>{}); });
  measurement.settings = state->settings(choice);
  return {measurement};
}

const ListedCases latency_cases(Command::latency, {{"message", method_of<LL>, true, prepare_latency<LL>},
                                                   {"message", method_of<LL128>, true, prepare_latency<LL128>}});
const ListedCases bandwidth_cases(Command::bandwidth, {{"put", method_of<LL>, true, prepare_bandwidth<LL>},
                                                       {"put", method_of<LL128>, true, prepare_bandwidth<LL128>}});

}  // namespace

}  // namespace beeline::bench::packets_cases
