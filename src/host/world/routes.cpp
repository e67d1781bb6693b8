// SPDX-License-Identifier: Apache-2.0
#include "host/world/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "memory/gpu_pointers.hpp"

namespace beeline {

namespace {

int index_here(const std::vector<Device>& gpus, const std::string& uuid) {
  for (const Device& gpu : gpus)
    if (gpu.uuid == uuid) return gpu.index;
  return -1;
}

/// The GPU that a rank drives, in its process: its own, or the one with which a host rank reaches GPU memory.
int gpu_of(const Member& member) { return member.device.is_gpu() ? member.device.index : member.reaching_gpu; }

void add_once(std::vector<int>& gpus, int gpu) {
  if (gpu >= 0 && std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) gpus.push_back(gpu);
}

}  // namespace

std::vector<MemoryMember> find_copy_paths(const Membership& membership, bool has_peer_access) {
  const int own_gpu = gpu_of(membership.own());
  const std::vector<Device> gpus = own_gpu >= 0 ? visible_gpus() : std::vector<Device>{};
  const auto reaches = [&](int from, int to) {
    return from == to || (has_peer_access && (to < 0 || peer_access(from, to)));
  };
  std::vector<int> own_gpus;  // GPUs of this process's ranks
  for (const Member& member : membership.all())
    if (member.process == membership.own().process) add_once(own_gpus, gpu_of(member));
  std::vector<MemoryMember> found;
  for (const int other : membership.everyone()) {
    const Member& member = membership.of(other);
    MemoryMember path{.process = member.process,
                      .is_local = membership.is_local(other),
                      .gpu = member.device.index,
                      .reaching_gpu = member.reaching_gpu};
    if (member.device.is_gpu()) path.gpu_here = index_here(gpus, member.device.uuid);
    if (!membership.has_gpus() && !has_peer_access && path.is_local && other != membership.rank())
      path.copies = CopyPath::staged;
    const bool is_copied_to = path.is_local && member.device.is_gpu();  // other nodes: the engine copies
    if (own_gpu >= 0 && is_copied_to && !reaches(own_gpu, path.gpu_here))
      path.copies = path.gpu_here < 0 || !membership.device().is_gpu() ? CopyPath::none : CopyPath::staged;
    for (const int gpu : own_gpus)
      if (member.device.is_gpu()) add_once(path.seen_by, reaches(gpu, path.gpu_here) ? gpu : path.gpu_here);
    if (path.copies != CopyPath::direct)
      log(LogLevel::info,
          fmt::format("copies to and from rank {}: {}", other,
                      path.copies == CopyPath::staged ? "staged through host memory" : "none"),
          membership.rank());
    found.push_back(std::move(path));
  }
  return found;
}

std::vector<std::uint32_t> places_of(const Membership& membership, const std::vector<int>& ranks) {
  std::vector<std::uint32_t> places(ranks.size(), no_place);
  if (ranks.size() <= max_node_ranks) {
    std::iota(places.begin(), places.end(), 0u);
    return places;
  }
  std::uint32_t next = 0;
  for (std::size_t member = 0; member < ranks.size(); ++member)
    if (membership.is_local(ranks[member])) places[member] = next++;
  return places;
}

Routes::Routes(const Membership& membership, std::vector<MemoryMember> paths, const Areas& areas,
               const AddressBook& addresses, std::function<bool(const void*)> is_gpu_memory)
    : membership_(membership), paths_(std::move(paths)), areas_(areas), addresses_(addresses),
      is_gpu_memory_(std::move(is_gpu_memory)), peers_(paths_.size()), lost_(paths_.size()),
      has_staged_copies_(std::any_of(paths_.begin(), paths_.end(),
                                     [](const MemoryMember& path) { return path.copies != CopyPath::direct; }) &&
                         (membership.device().is_gpu() || !membership.has_gpus())) {}

void Routes::ask(const Engine& engine) {
  has_engine_ = true;
  for (const int peer : membership_.everyone()) {
    if (peer == membership_.rank()) continue;
    PeerRoute& route = peers_[static_cast<std::size_t>(peer)];
    route = engine.route_to(peer);
    if (route.access == PeerAccess::direct) continue;
    // The text stays terminated by zero; an empty one means that loads and stores reach the peer.
    why_not_direct(peer).copy(areas_.host_header()->route_reasons[peer], max_route_reason - 1);
    log(LogLevel::info,
        fmt::format("rank {} is reached {}: {}", peer,
                    route.access == PeerAccess::engine ? "by an engine" : "not at all", route.reason),
        membership_.rank());
  }
}

Route Routes::to(int peer) const {
  const PeerRoute& route = peers_[static_cast<std::size_t>(peer)];
  if (route.access == PeerAccess::direct) return {};
  return {route.access == PeerAccess::engine ? RouteKind::engine : RouteKind::refused, -1, route.reason};
}

Route Routes::to_gpu_of(int peer) const {
  if (copies_to(static_cast<std::uint32_t>(peer)) == CopyPath::direct) return {};
  return {RouteKind::refused, -1, "no peer access"};
}

bool Routes::has_indirect(const std::vector<int>& ranks) const {
  return std::any_of(ranks.begin(), ranks.end(), [this](int member) { return !to(member).is_direct(); });
}

void Routes::add_to(Context& context, const std::vector<int>& ranks, const std::vector<std::uint32_t>& places,
                    bool for_host) const {
  if (!has_indirect(ranks)) return;
  HostAreaHeader& header = *areas_.host_header();
  MemberRoute* const routes_of_team = header.members[context.team];
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    const auto world_rank = static_cast<std::size_t>(ranks[member]);
    const PeerAccess access = peers_[world_rank].access;
    const std::uint32_t place = places[member];
    routes_of_team[member] = {
        {access, place}, static_cast<std::uint32_t>(world_rank), membership_.of(ranks[member]).device.kind};
    if (access == PeerAccess::direct && member - context.first_place == place)
      context.direct_places |= std::uint64_t{1} << place;
  }
  CommandTickets* const tickets = for_host ? header.host_tickets : areas_.heap_header()->tickets;
  RouteTable& table = header.routes[context.team][for_host ? 1 : 0];
  table = {header.rings[for_host ? 1 : 0], tickets, routes_of_team};
  context.set_routes(&table);
}

std::string Routes::why_not_direct(int peer) const {
  if (membership_.is_local(peer)) return peers_[static_cast<std::size_t>(peer)].reason;
  return fmt::format("rank {} is on node {}, rank {} on node {}", peer, membership_.of(peer).node, membership_.rank(),
                     membership_.own().node);
}

PathToRank Routes::describe(int peer) const {
  if (peer == membership_.rank()) return {"loads and stores", "direct", "it is the rank itself"};
  const PeerRoute& route = peers_[static_cast<std::size_t>(peer)];
  if (route.access == PeerAccess::refused) return {"none", "none", route.reason};
  if (route.access == PeerAccess::engine) return {"commands to an engine", "commands to an engine", route.reason};
  constexpr const char* node = "both ranks are on one node";
  constexpr const char* in_host_memory = "loads and stores in host memory only";  // such as the peer's pinned heap
  switch (copies_to(static_cast<std::uint32_t>(peer))) {
    case CopyPath::direct:
      if (!membership_.device().is_gpu() && membership_.of(peer).device.is_gpu())
        return {in_host_memory, "direct", fmt::format("{}; CPU threads do not access GPU memory", node)};
      return {"loads and stores", "direct", node};
    case CopyPath::staged:
      return {in_host_memory, "staged through host memory", fmt::format("{}, without peer access", node)};
    default:
      return {in_host_memory, "none", fmt::format("{}, but this process does not see that rank's GPU", node)};
  }
}

Route Routes::to_members(const Team& team, const char* what) const {
  if (needs_engine(team)) return {RouteKind::engine, -1, "some members are on other nodes"};
  require_direct(team, what);
  return {};
}

void Routes::require_direct(const Team& team, const char* what) const {
  const auto refuse = [&](int asking, int peer, std::string_view reason) {
    require(reason.empty(), Status::unreachable,
            fmt::format("{}: not with these ranks, since rank {} does not reach rank {} by loads and stores: {}", what,
                        asking, peer, reason));
  };
  for (int to = 0; to < team.size(); ++to)
    if (const int peer = team.world_rank(to); !membership_.is_local(peer))
      refuse(membership_.rank(), peer, why_not_direct(peer));
  for (int from = 0; from < team.size(); ++from)
    for (int to = 0; to < team.size(); ++to) {
      const int asking = team.world_rank(from), peer = team.world_rank(to);
      refuse(asking, peer, areas_.host_header(asking)->route_reasons[peer]);
    }
}

void Routes::require_one_node(const Team& team, const char* what) const {
  for (int member = 0; member < team.size(); ++member)
    if (const int other = team.world_rank(member); !membership_.is_local(other))
      throw Error(Status::unavailable,
                  fmt::format("{} needs memory that all members share: {}", what, why_not_direct(other)),
                  membership_.rank());
}

bool Routes::is_on_gpu(const void* address) const {
  return is_gpu_memory_(address) || gpu_memory::describe(address).kind == gpu_memory::PointerKind::device;
}

bool Routes::is_gpu_memory_elsewhere(const void* address, std::uint32_t owner) const {
  if (membership_.of(static_cast<int>(owner)).device.kind == DeviceKind::host) return false;
  const bool on_gpu = is_on_gpu(address);
  require(
      !on_gpu || copies_to(owner) != CopyPath::none, Status::unreachable,
      fmt::format("{} is memory of rank {}'s GPU, which rank {} reaches neither directly (no peer access) nor staged "
                  "(a GPU rank of a process that sees that GPU could)",
                  address, owner, membership_.rank()));
  return on_gpu && copies_to(owner) == CopyPath::staged;
}

Route Routes::of_copy(const void* address) const {
  const std::uint32_t owner = addresses_.owner_of(address);
  if (owner == no_peer) return {};
  if (const Route peer = to(static_cast<int>(owner)); !peer.is_direct()) {
    require(peer.kind == RouteKind::engine, Status::unreachable,
            fmt::format("{} is memory of rank {}, which rank {} does not reach: {}", address, owner, membership_.rank(),
                        peer.reason));
    require(!lost_[owner], Status::peer_died,
            fmt::format("{} is memory of rank {} on another node, which has ended", address, owner));
    const bool has_alias = membership_.spans_nodes() && addresses_.bytes_of_one_owner(address) != SIZE_MAX;
    require(addresses_.is_in_slot(address) || has_alias, Status::unreachable,
            fmt::format("{} is memory of rank {} outside its heaps and segments, which its engine does not reach: {}",
                        address, owner, why_not_direct(static_cast<int>(owner))));
    return peer;
  }
  if (!has_staged_copies_ || copies_to(owner) == CopyPath::direct) return {};
  if (!membership_.has_gpus()) return {RouteKind::copy, static_cast<int>(owner), "no peer access"};
  if (!is_gpu_memory_elsewhere(address, owner)) return {};
  return {RouteKind::copy, paths_[owner].gpu_here, "no peer access"};
}

bool Routes::all_devices_reach(const void* address) const {
  return addresses_.is_in_slot(address) &&
         addresses_.owner_of(address) == static_cast<std::uint32_t>(membership_.rank()) &&
         areas_.is_host_memory(areas_.offset_in_slot(address));
}

bool Routes::is_staged_by_engine(const void* destination, const void* source) const {
  const Route to = of_copy(destination), from = of_copy(source);
  return to.kind == RouteKind::engine && from.kind != RouteKind::engine && membership_.device().is_gpu() &&
         is_on_gpu(source);
}

Route Routes::of_kernel(const void* address) const {
  const std::uint32_t owner = addresses_.owner_of(address);
  if (owner == no_peer || copies_to(owner) == CopyPath::direct || !is_gpu_memory_elsewhere(address, owner)) return {};
  return {RouteKind::refused, -1, "no peer access to that GPU's memory"};
}

}  // namespace beeline
