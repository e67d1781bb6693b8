// SPDX-License-Identifier: Apache-2.0
#include "host/world/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "runtime/node.hpp"
#include "runtime/process_id.hpp"

namespace beeline {

Membership::Membership(int rank, std::vector<Member> members, int ranks_on_machine)
    : rank_(rank), members_(std::move(members)), ranks_on_machine_(ranks_on_machine) {
  for (int each = 0; each < size(); ++each) {
    if (is_local(each)) local_ranks_.push_back(each);
    (of(each).device.is_gpu() ? has_gpus_ : has_hosts_) = true;
    if (device().is_gpu() ? of(each).device.uuid != device().uuid : each != rank) continue;
    ++sharers_.all;
    if (shares_process(each)) ++sharers_.of_process;
  }
}

std::vector<Device> Membership::devices() const {
  std::vector<Device> found;
  for (const Member& member : members_) found.push_back(member.device);
  return found;
}

std::vector<int> Membership::everyone() const {
  std::vector<int> ranks(members_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool Membership::spans_nodes(const Team& team) const {
  if (!spans_nodes()) return false;
  for (int member = 0; member < team.size(); ++member)
    if (!is_local(team.world_rank(member))) return true;
  return false;
}

std::vector<int> Membership::remote_among(const std::vector<int>& ranks) const {
  std::vector<int> remote;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(remote), [this](int each) { return !is_local(each); });
  return remote;
}

detail::NodeMap Membership::node_map(const Context& among) const {
  std::vector<int> nodes;
  for (std::uint32_t member = 0; member < among.size; ++member)
    nodes.push_back(of(static_cast<int>(among.world_rank(member))).node);
  return detail::NodeMap(nodes);
}

std::vector<int> Membership::members_to_notify(const std::vector<int>& ranks) const {
  if (ranks.size() <= max_node_ranks) return remote_among(ranks);
  const auto local_before = std::count_if(ranks.begin(), std::find(ranks.begin(), ranks.end(), rank_),
                                          [this](int member) { return is_local(member); });
  std::vector<int> node_of, notified;
  for (const int member : ranks) node_of.push_back(of(member).node);
  const detail::NodeMap nodes(node_of);
  for (std::uint32_t node = 0; node < nodes.nodes(); ++node)
    notified.push_back(ranks[nodes.node_leader(node, static_cast<std::size_t>(local_before))]);
  return remote_among(notified);
}

bool Membership::mixes_kinds(const std::vector<int>& ranks) const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int each) { return of(each).device.kind != of(ranks.front()).device.kind; });
}

std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& mine, std::int64_t deadline_ns) {
  std::vector<std::string> all;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(mine)), deadline_ns))
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all;
}

namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    found.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return found;
}

/// The number of a name. Names are numbered in the order of their first use.
int number_of(const std::string& name, std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), name);
  const auto number = static_cast<int>(found - known.begin());
  if (found == known.end()) known.push_back(name);
  return number;
}

/// Collective. Returns the device that was chosen for this rank, and the devices that each rank's process sees.
std::pair<Device, std::vector<DeviceInventory>> choose_device(Bootstrap& bootstrap, const Config& config) {
  const std::string choice =
      devices_of_ranks(config.device, bootstrap.size())[static_cast<std::size_t>(bootstrap.rank())];
  const std::vector<Device> gpus = config.device == "cpu" ? std::vector<Device>{} : visible_gpus();
  std::string mine = fmt::format("{}\n{}\n", detail::process_id(), choice);
  for (const Device& gpu : gpus) mine += gpu.uuid + "\n";
  std::vector<DeviceInventory> inventories;
  for (const std::string& text : allgather_text(bootstrap, mine, config.deadline_ns)) {
    auto parts = lines(text);
    inventories.push_back({std::stoull(parts[0]), {parts.begin() + 2, parts.end()}, parts[1]});
  }
  const int index = choose_gpu(bootstrap.rank(), inventories, mps_runs());
  return {index < 0 ? host_device() : gpus[static_cast<std::size_t>(index)], std::move(inventories)};
}

/// Numbers the nodes and hosts of `members`; throws if a node has too many members.
void number_nodes(std::vector<Member>& members, const std::vector<std::string>& nodes) {
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
                        count, members.size(), max_node_ranks));
  }
}

}  // namespace

Membership discover_members(Bootstrap& bootstrap, const Config& config) {
  const auto [mine, inventories] = choose_device(bootstrap, config);
  const std::string description =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{:d}\n{}\n", mine.index, mine.uuid, mine.name, mine.multiprocessors,
                  mine.memory_bytes, mine.host_atomics, detail::node_of(config));
  std::vector<Member> members;
  std::vector<std::string> owned, nodes;
  for (const std::string& text : allgather_text(bootstrap, description, config.deadline_ns)) {
    const auto parts = lines(text);
    const int gpu = std::stoi(parts[0]);
    members.push_back({inventories[members.size()].process,
                       {gpu < 0 ? DeviceKind::host : DeviceKind::gpu, gpu, parts[1], parts[2], std::stoi(parts[3]),
                        std::stoull(parts[4]), parts[5] == "1"}});
    owned.push_back(parts[1]);
    nodes.push_back(parts[6]);
  }
  number_nodes(members, nodes);
  for (std::size_t each = 0; each < members.size(); ++each) {
    if (members[each].device.is_gpu()) continue;
    std::vector<std::string> local = owned;
    for (std::size_t other = 0; other < members.size(); ++other)
      if (members[other].node != members[each].node) local[other].clear();
    members[each].reaching_gpu = choose_reaching_gpu(static_cast<int>(each), inventories, local);
  }
  const int rank = bootstrap.rank();
  const std::string machine = detail::machine_of(nodes[static_cast<std::size_t>(rank)]);
  const auto on_machine = std::count_if(nodes.begin(), nodes.end(),
                                        [&](const std::string& node) { return detail::machine_of(node) == machine; });
  Membership found(rank, std::move(members), static_cast<int>(on_machine));
  if (found.spans_nodes()) bootstrap.set_neighbors(found.local_ranks());
  const int reaching = found.own().reaching_gpu;
  if (const int used = mine.is_gpu() ? mine.index : reaching; used >= 0) use_gpu(used);
  log(LogLevel::info,
      fmt::format("device {}{}{}", mine.is_gpu() ? fmt::format("cuda:{} ", mine.index) : "cpu ", mine.name,
                  reaching < 0 ? "" : fmt::format(", reaching GPU memory with cuda:{}", reaching)),
      rank);
  return found;
}

}  // namespace beeline
