// SPDX-License-Identifier: Apache-2.0
// Which memory this rank's device reaches, and by way of which device copies go where it does not.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "host/world_implementation.hpp"
#include "memory/gpu_pointers.hpp"
#include "transport/host_stream.hpp"
#include "transport/routed_stream.hpp"

namespace beeline {

namespace {

int index_here(const std::vector<Device>& gpus, const std::string& uuid) {
  for (const Device& gpu : gpus)
    if (gpu.uuid == uuid) return gpu.index;
  return -1;
}

/// The GPU that a rank drives, in its process: its own, or the one with which a host rank reaches GPU memory.
int gpu_of(const Member& member) { return member.device.is_gpu() ? member.device.index : member.reaching_gpu; }

}  // namespace

std::vector<MemoryMember> World::Implementation::find_routes() const {
  const Member& own = members[static_cast<std::size_t>(rank)];
  const int own_gpu = gpu_of(own);
  const std::vector<Device> gpus = own_gpu >= 0 ? visible_gpus() : std::vector<Device>{};
  const auto reaches = [&](int from, int to) {
    return from == to || (config.peer_access && (to < 0 || peer_access(from, to)));
  };
  std::vector<int> own_gpus;  // of this process's ranks
  for (const Member& member : members)
    if (member.process == own.process && gpu_of(member) >= 0 &&
        std::find(own_gpus.begin(), own_gpus.end(), gpu_of(member)) == own_gpus.end())
      own_gpus.push_back(gpu_of(member));
  std::vector<MemoryMember> found;
  for (std::size_t other = 0; other < members.size(); ++other) {
    const Member& member = members[other];
    MemoryMember route{.process = member.process, .gpu = member.device.index, .reaching_gpu = member.reaching_gpu};
    if (member.device.is_gpu()) route.gpu_here = index_here(gpus, member.device.uuid);
    if (!has_gpus() && !config.peer_access && static_cast<int>(other) != rank) route.route = Route::staged;
    if (own_gpu >= 0 && member.device.is_gpu() && !reaches(own_gpu, route.gpu_here))
      route.route = route.gpu_here < 0 || !device().is_gpu() ? Route::none : Route::staged;
    for (const int gpu : own_gpus) {
      if (!member.device.is_gpu()) break;
      const int seen = reaches(gpu, route.gpu_here) ? gpu : route.gpu_here;
      if (seen >= 0 && std::find(route.seen_by.begin(), route.seen_by.end(), seen) == route.seen_by.end())
        route.seen_by.push_back(seen);
    }
    if (route.route != Route::direct)
      log(LogLevel::info,
          fmt::format("copies to and from rank {}: {}", other,
                      route.route == Route::staged ? "staged through host memory" : "none"),
          rank);
    found.push_back(std::move(route));
  }
  return found;
}

bool World::Implementation::is_far_gpu_memory(const void* address) {
  const std::uint32_t owner = addresses.owner_of(address);
  if (owner == no_peer || members[owner].device.kind == DeviceKind::host) return false;
  const bool on_gpu =
      memory->range().is_gpu_memory(address) || gpu_memory::describe(address).kind == gpu_memory::PointerKind::device;
  require(
      !on_gpu || routes[owner].route != Route::none, Status::unreachable,
      fmt::format("{} is memory of rank {}'s GPU, which rank {} reaches neither directly (no peer access) nor staged "
                  "(a GPU rank of a process that sees that GPU could)",
                  address, owner, rank));
  return on_gpu && routes[owner].route == Route::staged;
}

int World::Implementation::device_for(const void* address) {
  constexpr int own = -1;
  const std::uint32_t owner = addresses.owner_of(address);
  if (owner == no_peer || routes[owner].route == Route::direct) return own;
  if (!has_gpus()) return static_cast<int>(owner);
  return is_far_gpu_memory(address) ? routes[owner].gpu_here : own;
}

bool World::Implementation::stages_copies() const {
  return gpu_reach == nullptr && std::any_of(routes.begin(), routes.end(),
                                             [](const MemoryMember& member) { return member.route != Route::direct; });
}

std::unique_ptr<Stream> World::Implementation::make_stream(StreamPriority priority) {
  if (gpu_reach) return make_host_stream(device(), host_context, lend_grid_state(), gpu_reach.get());
  return routed(beeline::make_stream(device(), host_context, lend_grid_state(), priority));
}

std::unique_ptr<Stream> World::Implementation::adopt_stream(void* native) {
  return routed(adopt_gpu_stream(device(), lend_grid_state(), native));
}

std::unique_ptr<Stream> World::Implementation::routed(std::unique_ptr<Stream> own) {
  if (!stages_copies()) return own;
  Routes how;
  how.device_of = [this](const void* address) { return device_for(address); };
  how.make_stream = [this](int index) {
    Device there = device();
    if (there.is_gpu()) there.index = index;
    return beeline::make_stream(there, host_context, nullptr);
  };
  how.chunk_bytes = config.chunk_bytes;
  how.pinned = device().is_gpu();
  return make_routed_stream(std::move(own), std::move(how));
}

}  // namespace beeline
