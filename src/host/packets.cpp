// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/packets.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "host/line_test.hpp"
#include "host/world/exchange.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "host/world/teams.hpp"

namespace beeline {

namespace {

std::string host_rank_reason(const World& world) {
  for (int rank = 0; rank < world.size(); ++rank)
    if (!world.device(rank).is_gpu()) return fmt::format("only GPUs store whole lines, and rank {} has none", rank);
  return {};
}

/// Counts of the lines of rank `sender` that rank `seer` has seen torn.
struct TornLines {
  std::uint64_t looks, torn;
  int seer, sender;
};

/// Collective.
std::string find_reason(Team& team) {
  if (const std::string host_rank = host_rank_reason(team.world()); !host_rank.empty()) return host_rank;
  if (world_part<Routes>(team.world()).needs_engine(team)) return "GPUs do not store to other nodes";
  const std::vector<detail::LinesSeen> seen = detail::watch_lines(team);
  TornLines mine{};
  for (int sender = 0; sender < team.size(); ++sender)
    if (const auto [looks, torn] = seen[static_cast<std::size_t>(sender)]; torn != 0)
      mine = {looks, torn, team.world().rank(), team.world_rank(sender)};
  for (const auto& theirs : detail::values_in(team, "no_ll128_reason", mine))
    if (theirs && theirs->torn != 0)
      return fmt::format("rank {} saw {} torn parts in {} looks at lines that rank {} stored", theirs->seer,
                         theirs->torn, theirs->looks, theirs->sender);
  return {};
}

void require_lines(Team& team, Heap heap) {
  require(heap == Heap::symmetric, Status::invalid_argument,
          "packets of 128 bytes lie in GPU memory: the symmetric heap");
  const std::string reason = no_ll128_reason(team);
  require(reason.empty(), Status::unavailable,
          fmt::format("no packets of 128 bytes among these ranks: {}; packets (PacketRings) serve instead", reason));
}

bool spans_nodes(Team& team) { return world_part<Routes>(team.world()).needs_engine(team); }

/// A channel with the sizes of its rings; their addresses are set later.
template <class Protocol>
ProtocolChannel<Protocol> channel_of(Team& team, std::size_t slot_bytes, std::uint32_t depth, Heap heap) {
  static_cast<void>(world_part<Routes>(team.world()).to_members(team, "packets"));
  require(!spans_nodes(team) || static_cast<std::uint32_t>(team.size()) <= max_node_ranks, Status::unavailable,
          fmt::format("packets: a team of {} members on several nodes; at most {}", team.size(), max_node_ranks));
  require(slot_bytes > 0 && slot_bytes <= (std::size_t{1} << 30), Status::invalid_argument,
          fmt::format("packet slots of {} bytes: 1 to 2^30", slot_bytes));
  require(depth >= 2 && (depth & (depth - 1)) == 0, Status::invalid_argument,
          fmt::format("packet channel depth {}: a power of two, at least 2", depth));
  if constexpr (std::is_same_v<Protocol, LL128>) require_lines(team, heap);
  const std::size_t units = (slot_bytes + Protocol::payload_bytes - 1) / Protocol::payload_bytes;
  return {.rings = nullptr, .states = nullptr, .depth = depth, .slot_units = static_cast<std::uint32_t>(units)};
}

template <class Protocol>
std::size_t pairs_of_ring(const ProtocolChannel<Protocol>& channel) {
  return std::size_t{Protocol::unit_bytes} / sizeof(machine::PacketPair) * channel.depth * channel.slot_units;
}

/// Bytes of a channel's memory: the states, the rings and, for members on other nodes, signals and copies.
template <class Protocol>
std::size_t memory_bytes(const ProtocolChannel<Protocol>& channel, int ranks, bool spans_nodes) {
  std::size_t ring_bytes = detail::array_bytes(pairs_of_ring(channel), sizeof(machine::PacketPair));
  if (spans_nodes)
    ring_bytes = ring_bytes > SIZE_MAX / 4 ? SIZE_MAX : 2 * ring_bytes + channel.depth * sizeof(std::uint64_t);
  const std::size_t each = ring_bytes > SIZE_MAX - sizeof(PacketState) ? SIZE_MAX : sizeof(PacketState) + ring_bytes;
  return detail::array_bytes(static_cast<std::size_t>(ranks), each);
}

}  // namespace

std::string no_ll128_reason(Team& team) {
  auto& known = world_part<Teams>(team.world()).no_ll128_reasons;
  // If the world's test has found no torn line, its teams need no test of their own.
  if (const auto& of_world = known[Teams::world_id]; of_world && of_world->empty()) return *of_world;
  std::optional<std::string>& of_team = known[team.context().team];
  if (!of_team) of_team = find_reason(team);
  return *of_team;
}

template <class Protocol>
ProtocolRings<Protocol>::ProtocolRings(Team& team, std::size_t slot_bytes, std::uint32_t depth, Heap heap,
                                       std::uint32_t first_sequence)
    : channel_(channel_of<Protocol>(team, slot_bytes, depth, heap)),
      // CPU threads store into the rings of GPU ranks.
      memory_(team, memory_bytes(channel_, team.size(), spans_nodes(team)),
              team.context().mixed ? Heap::pinned : heap) {
  const auto ranks = static_cast<std::size_t>(team.size());
  channel_.states = reinterpret_cast<PacketState*>(memory_.data());
  channel_.rings = reinterpret_cast<machine::PacketPair*>(channel_.states + ranks);
  // Flags start with the sequence number before the first; none of the next 2^32 - 1 messages has this
  // number.
  const std::uint64_t stale = static_cast<std::uint64_t>(first_sequence) << 32;
  const std::vector<machine::PacketPair> unsent(pairs_of_ring(channel_), {stale, stale});
  const std::vector<PacketState> states(
      ranks, PacketState{first_sequence, first_sequence, first_sequence, 0, 0, first_sequence});
  for (std::size_t from = 0; from < ranks; ++from)
    team.world().copy(channel_.rings + from * unsent.size(), unsent.data(),
                      unsent.size() * sizeof(machine::PacketPair));
  team.world().copy(channel_.states, states.data(), states.size() * sizeof(PacketState));
  if (spans_nodes(team)) {
    const detail::RemotePackets<PacketState> memory{channel_.states, static_cast<std::uint32_t>(ranks), depth,
                                                    Protocol::unit_bytes * channel_.slot_units};
    const std::vector<std::uint64_t> signals(ranks * depth, first_sequence);
    team.world().copy(memory.signals(0), signals.data(), signals.size() * sizeof signals[0]);
  }
  team.barrier();
}

template class ProtocolRings<LL>;
template class ProtocolRings<LL128>;

}  // namespace beeline
