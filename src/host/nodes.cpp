// SPDX-License-Identifier: Apache-2.0
// Worlds whose ranks are on several nodes (docs/network.md): who is where, and what takes the network then.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "beeline/device/put_get.hpp"
#include "host/world_implementation.hpp"
#include "runtime/node.hpp"
#include "transports/network_engine.hpp"

namespace beeline {

namespace {

/// The number of a name: those that differ are numbered in the order of their first use.
int number_of(const std::string& name, std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), name);
  const auto number = static_cast<int>(found - known.begin());
  if (found == known.end()) known.push_back(name);
  return number;
}

}  // namespace

std::vector<int> World::Implementation::near_ranks() const {
  std::vector<int> found;
  for (int other = 0; other < size; ++other)
    if (is_near(other)) found.push_back(other);
  return found;
}

bool World::Implementation::spans_nodes(const Team& team) const {
  if (!spans_nodes()) return false;
  for (int member = 0; member < team.size(); ++member)
    if (!is_near(team.world_rank(member))) return true;
  return false;
}

void World::Implementation::learn_nodes(const std::vector<std::string>& nodes) {
  const std::string machine = detail::machine_of(nodes[static_cast<std::size_t>(rank)]);
  ranks_on_machine = static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(), [&](const std::string& node) { return detail::machine_of(node) == machine; }));
  std::vector<std::string> known, hosts;
  for (std::size_t each = 0; each < nodes.size(); ++each) {
    members[each].node = number_of(nodes[each], known);
    members[each].host = number_of(detail::host_of(nodes[each]), hosts);
  }
  for (int node = 0; node < static_cast<int>(known.size()); ++node) {
    const auto on_it = [node](const Member& member) { return member.node == node; };
    const auto count = std::count_if(members.begin(), members.end(), on_it);
    require(count <= max_node_ranks, Status::invalid_argument,
            fmt::format("{} ranks of a world of {} are on one node, which has {} at most: start them on more hosts, or "
                        "make several nodes of this machine (BEELINE_SPLIT_NODES, --split-nodes)",
                        count, size, max_node_ranks));
  }
  if (known.size() == 1) return;
  bootstrap->set_neighbors(near_ranks());
}

void World::Implementation::require_one_node(const Team& team, const char* what) const {
  for (int member = 0; member < team.size(); ++member)
    if (const int other = team.world_rank(member); !is_near(other))
      throw Error(Status::unavailable,
                  fmt::format("{} needs memory that all members share: {}", what, why_not_direct(other)), rank);
}

std::string World::Implementation::why_not_direct(int peer) const {
  if (is_near(peer)) return peer_routes[static_cast<std::size_t>(peer)].reason;
  const auto node = [this](int each) { return members[static_cast<std::size_t>(each)].node; };
  return fmt::format("rank {} is on node {}, rank {} on node {}", peer, node(peer), rank, node(rank));
}

std::unique_ptr<Engine> World::Implementation::make_network() {
  NetworkPlan plan;
  plan.rank = rank, plan.world = world_secret, plan.is_split = config.split_nodes > 1;
  plan.transports = config.transports;
  plan.keys = config.memory_keys, plan.gpu_payloads = config.gpu_payloads, plan.is_gpu = device().is_gpu();
  plan.deadline_ns = config.deadline_ns, plan.poll_us = config.engine_poll_us;
  plan.meeting_point = config.rendezvous.empty() ? config.launcher.address : config.rendezvous;
  for (const Member& member : members) {
    plan.node_of.push_back(member.node);
    plan.host_of.push_back(member.host);
    plan.is_staged.push_back(member.device.is_gpu() || !config.peer_access);
  }
  FailureEvents events;
  events.members_to_notify = [this](std::uint32_t team) { return members_to_tell(team); };
  events.cause = [this](std::uint32_t team) {
    const std::vector<WaitRecord> waits = failed_waits_of(team);
    if (!waits.empty() && waits.front().status != static_cast<std::uint32_t>(Status::aborted))
      return describe(waits.front());
    const End end = end_of_team(team);
    return end.text.empty() ? cause_of_abort(team).text : end.text;
  };
  events.aborted = [this](std::uint32_t team, std::uint64_t word, const std::string& cause) {
    take_far_abort(team, word, cause);
  };
  events.lost = [this](int peer, const std::string& reason) { lose(peer, reason); };
  return make_network_engine(*bootstrap, plan, std::move(events));
}

std::vector<int> World::Implementation::far_members(std::uint32_t team) const {
  const std::lock_guard lock(team_mutex);
  const auto found = teams.find(team);
  std::vector<int> far;
  if (found != teams.end())
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(far),
                 [this](int member) { return !is_near(member); });
  return far;
}

std::vector<int> World::Implementation::members_to_tell(std::uint32_t team) const {
  const std::vector<int> far = far_members(team);
  const std::lock_guard lock(team_mutex);
  const auto found = teams.find(team);
  if (found == teams.end() || found->second.size() <= max_node_ranks) return far;
  const std::vector<int>& all = found->second;
  const auto near_before = std::count_if(all.begin(), std::find(all.begin(), all.end(), rank),
                                         [this](int member) { return is_near(member); });
  std::vector<int> node_of;
  for (const int member : all) node_of.push_back(members[static_cast<std::size_t>(member)].node);
  const detail::NodeMap nodes(node_of);
  std::vector<int> told;
  for (std::uint32_t node = 0; node < nodes.nodes(); ++node)
    if (const int member = all[nodes.node_leader(node, static_cast<std::size_t>(near_before))]; !is_near(member))
      told.push_back(member);
  return told;
}

void World::Implementation::take_far_abort(std::uint32_t team, std::uint64_t word, const std::string& cause) {
  {
    const std::lock_guard lock(team_mutex);
    if (!teams.contains(team)) return;
  }
  if (!cause.empty()) keep_cause(Status::aborted, cause);
  raise(team, static_cast<int>(word) - 1);
  tell_kernels();
}

void World::Implementation::lose(int peer, const std::string& reason) {
  if (has_left || is_left_out || bootstrap->health()[static_cast<std::size_t>(peer)].state != RankState::healthy)
    return;
  const std::string text = fmt::format("rank {} has lost its connection to rank {}: {}", rank, peer, reason);
  note_end(peer, text);
  raise_with_cause(Status::peer_died, text, barrier_context);
}

void World::Implementation::read_from(int other, void* to, const void* at, std::size_t bytes) {
  if (is_near(other))
    std::memcpy(to, at, bytes);
  else
    copy_by_engine(to, at, bytes);
}

Status World::Implementation::drain_engine(const Context& among, Timeout timeout) {
  HostAreaHeader& header = *host_header(rank);
  std::array<CommandTickets, command_rings> of_kernels{};  // those of a GPU's lie in its memory
  CommandTickets* kernels = heap_header(rank)->tickets;
  if (device().is_gpu()) {
    write(of_kernels.data(), kernels, sizeof of_kernels);
    kernels = of_kernels.data();
  }
  CommandTickets* const tickets[] = {kernels, header.host_tickets};
  for (std::size_t posters = 0; posters < std::size(tickets); ++posters)
    for (std::uint32_t queue = 0; queue < command_rings; ++queue) {
      const CommandQueue drained{&header.rings[posters][queue], &tickets[posters][queue]};
      const Status status = detail::drain_queue(among, Operation::quiet, drained, {true, timeout}).status;
      if (status != Status::ok) return status;
    }
  return Status::ok;
}

}  // namespace beeline
