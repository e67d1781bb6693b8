// SPDX-License-Identifier: Apache-2.0
// The one place that says how this rank reaches another: directly, by way of another device or of bounce buffers (host
// copies alone), by its engine, or not at all.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "beeline/core/log.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/paths.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "control/gpu_windows.hpp"
#include "host/carried_work.hpp"
#include "host/world_implementation.hpp"
#include "memory/gpu_pointers.hpp"
#include "transport/bounce_stream.hpp"
#include "transport/host_stream.hpp"

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
    MemoryMember route{.process = member.process,
                       .is_near = is_near(static_cast<int>(other)),
                       .gpu = member.device.index,
                       .reaching_gpu = member.reaching_gpu};
    if (member.device.is_gpu()) route.gpu_here = index_here(gpus, member.device.uuid);
    if (!has_gpus() && !config.peer_access && route.is_near && static_cast<int>(other) != rank)
      route.copies = CopyPath::staged;
    const bool is_copied_to = route.is_near && member.device.is_gpu();  // others' is the engine's affair
    if (own_gpu >= 0 && is_copied_to && !reaches(own_gpu, route.gpu_here))
      route.copies = route.gpu_here < 0 || !device().is_gpu() ? CopyPath::none : CopyPath::staged;
    for (const int gpu : own_gpus) {
      if (!member.device.is_gpu()) break;
      const int seen = reaches(gpu, route.gpu_here) ? gpu : route.gpu_here;
      if (seen >= 0 && std::find(route.seen_by.begin(), route.seen_by.end(), seen) == route.seen_by.end())
        route.seen_by.push_back(seen);
    }
    if (route.copies != CopyPath::direct)
      log(LogLevel::info,
          fmt::format("copies to and from rank {}: {}", other,
                      route.copies == CopyPath::staged ? "staged through host memory" : "none"),
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
      !on_gpu || routes[owner].copies != CopyPath::none, Status::unreachable,
      fmt::format("{} is memory of rank {}'s GPU, which rank {} reaches neither directly (no peer access) nor staged "
                  "(a GPU rank of a process that sees that GPU could)",
                  address, owner, rank));
  return on_gpu && routes[owner].copies == CopyPath::staged;
}

bool World::Implementation::kernels_reach(const void* address) {
  const std::uint32_t owner = addresses.owner_of(address);
  return owner == no_peer || routes[owner].copies == CopyPath::direct || !is_far_gpu_memory(address);
}

int World::Implementation::device_for(const void* address) {
  constexpr int own = -1;
  const std::uint32_t owner = addresses.owner_of(address);
  if (owner == no_peer || routes[owner].copies == CopyPath::direct) return own;
  if (!has_gpus()) return static_cast<int>(owner);
  return is_far_gpu_memory(address) ? routes[owner].gpu_here : own;
}

bool World::Implementation::stages_copies() const {
  return gpu_reach == nullptr && std::any_of(routes.begin(), routes.end(), [](const MemoryMember& member) {
           return member.copies != CopyPath::direct;
         });
}

void World::Implementation::make_engine() {
  peer_routes.resize(static_cast<std::size_t>(size));
  if (config.engines != nullptr) {
    std::vector<Device> devices;
    for (const Member& member : members) devices.push_back(member.device);
    engine = config.engines->make(rank, devices);
  } else if (spans_nodes()) {
    engine = make_network();
  } else {
    return;
  }
  for (int peer = 0; peer < size; ++peer) {
    PeerRoute& route = peer_routes[static_cast<std::size_t>(peer)];
    if (peer == rank) continue;
    route = engine->route_to(peer);
    if (route.access == PeerAccess::direct) continue;
    // Its end is zero already; empty: reached by loads and stores.
    why_not_direct(peer).copy(host_header(rank)->route_reasons[peer], max_route_reason - 1);
    log(LogLevel::info,
        fmt::format("rank {} is reached {}: {}", peer,
                    route.access == PeerAccess::engine ? "by an engine" : "not at all", route.reason),
        rank);
  }
}

PathToRank path_to(World& world, int rank) {
  require(rank >= 0 && rank < world.size(), Status::invalid_argument,
          fmt::format("rank {} of a world of {}", rank, world.size()));
  if (rank == world.rank()) return {"loads and stores", "direct", "it is the rank itself"};
  const World::Implementation& known = world.implementation();
  const PeerRoute& route = known.peer_routes[static_cast<std::size_t>(rank)];
  if (route.access == PeerAccess::refused) return {"none", "none", route.reason};
  if (route.access == PeerAccess::engine) return {"commands to an engine", "commands to an engine", route.reason};
  constexpr const char* node = "both ranks are on one node";
  constexpr const char* in_host_memory = "loads and stores in host memory only";  // as in that rank's pinned heap
  const bool is_cpu_to_gpu = !world.device().is_gpu() && world.device(rank).is_gpu();
  switch (known.routes[static_cast<std::size_t>(rank)].copies) {
    case CopyPath::direct:
      if (is_cpu_to_gpu)
        return {in_host_memory, "direct", fmt::format("{}; CPU threads do not access GPU memory", node)};
      return {"loads and stores", "direct", node};
    case CopyPath::staged:
      return {in_host_memory, "staged through host memory", fmt::format("{}, without peer access", node)};
    default:
      return {in_host_memory, "none", fmt::format("{}, but this process does not see that rank's GPU", node)};
  }
}

NetworkStatistics network_statistics(const World& world) {
  const Engine* const engine = world.implementation().engine.get();
  return engine != nullptr ? engine->network_statistics() : NetworkStatistics{};
}

EngineClient World::Implementation::engine_client() {
  AddressRange& range = memory->range();
  EngineClient client;
  client.rank = rank, client.ranks = size;
  client.device = device();
  client.context = barrier_context;
  // By value: threads ask for each command, and would wait for lines of the cache that others change.
  client.address_of = [base = range.base(), slot = SlotLayout{config.slot_shift}.slot_bytes()](
                          std::uint32_t peer, std::uint64_t offset) { return base + peer * slot + offset; };
  client.piece_at = [&range](const void* address) { return range.piece_at(address); };
  client.unmaps = &range.unmaps();
  client.memory_users = &range.users();
  client.is_host_memory = [&range](const void* address) { return !range.is_gpu_memory(address); };
  client.network = spans_nodes() ? engine.get() : nullptr;
  client.is_far = [this](std::uint32_t peer) { return !is_near(static_cast<int>(peer)); };
  client.note_refusal = [this](const std::string& text) {
    RefusedCommand& refused = host_header(rank)->refused_command;
    std::uint64_t unclaimed = 0;
    const detail::SystemAtomic<std::uint64_t> claim(refused.is_claimed);
    if (!claim.compare_exchange_strong(unclaimed, 1, std::memory_order_relaxed)) return;
    text.copy(refused.text, sizeof refused.text - 1);  // its end is zero already
    detail::SystemAtomic<std::uint64_t>(refused.complete).store(1, std::memory_order_release);
  };
  client.fail = [this](const std::string& reason) {
    note_end(rank, reason);
    raise_with_cause(Status::peer_died, fmt::format("rank {0}'s engine failed: {1}", rank, reason), barrier_context);
    bootstrap->abort(reason);
  };
  return client;
}

void World::Implementation::serve_engine() {
  if (engine == nullptr) return;
  EngineClient client = engine_client();
  for (auto& rings : host_header(rank)->rings)
    for (CommandRing& ring : rings) client.rings.push_back(&ring);
  engine->serve(client);
}

std::unique_ptr<HostEngine> World::Implementation::make_host_engine(int threads, bool is_timed) {
  require(threads >= 1 && threads <= 8 && config.engine_poll_us >= 0, Status::invalid_argument,
          fmt::format("an engine of {} threads that look every {} us; valid: 1 to 8 threads, 0 us or more", threads,
                      config.engine_poll_us));
  open_windows();
  EngineOptions options{threads, config.engine_poll_us, config.engine_cores, {}, is_timed, windows};
  if (device().is_gpu() && options.cores.empty()) {
    NearCores near = cores_near_gpu(device().index);
    if (near.cores.empty())
      log(LogLevel::info, "the engine's threads run anywhere: " + near.reason, rank);
    else
      options.near = std::move(near.cores);
  }
  return std::make_unique<HostEngine>(engine_client(), options);
}

void World::Implementation::open_windows() {
  if (!device().is_gpu() || !config.cpu_stores) return;
  std::call_once(windows_are_open, [this] {
    auto opened = std::make_shared<const GpuWindows>(engine_client());
    for (const std::string& reason : opened->reasons())
      log(LogLevel::info, "words for GPU memory are left to streams, not stored by the engine's threads: " + reason,
          rank);
    if (!opened->empty()) windows = std::move(opened);
  });
}

HostEngine& World::Implementation::engine_of_queues() {
  const std::lock_guard lock(queue_engine_mutex);
  if (queue_engine == nullptr) queue_engine = make_host_engine(config.engine_threads, false);
  return *queue_engine;
}

bool World::Implementation::has_routes(const std::vector<int>& ranks) const {
  return std::any_of(ranks.begin(), ranks.end(), [this](int member) {
    return peer_routes[static_cast<std::size_t>(member)].access != PeerAccess::direct;
  });
}

void World::Implementation::add_routes(Context& context, const std::vector<int>& ranks,
                                       const std::vector<std::uint32_t>& places, bool for_host) const {
  if (!has_routes(ranks)) return;
  HostAreaHeader& header = *host_header(rank);
  MemberRoute* const routes_of_team = header.members[context.team];
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    const auto world_rank = static_cast<std::size_t>(ranks[member]);
    const PeerAccess access = peer_routes[world_rank].access;
    const std::uint32_t place = places[member];
    routes_of_team[member] = {{access, place}, static_cast<std::uint32_t>(world_rank), members[world_rank].device.kind};
    if (access == PeerAccess::direct && member - context.first_place == place)
      context.direct_places |= std::uint64_t{1} << place;
  }
  CommandTickets* const tickets = for_host ? header.host_tickets : heap_header(rank)->tickets;
  RouteTable& table = header.routes[context.team][for_host ? 1 : 0];
  table = {header.rings[for_host ? 1 : 0], tickets, routes_of_team};
  context.set_routes(&table);
}

bool World::Implementation::needs_engine(const void* address) const {
  const std::uint32_t owner = addresses.owner_of(address);
  if (owner == no_peer) return false;
  const PeerRoute& route = peer_routes[owner];
  if (route.access == PeerAccess::direct) return false;
  require(route.access == PeerAccess::engine, Status::unreachable,
          fmt::format("{} is memory of rank {}, which rank {} does not reach: {}", address, owner, rank, route.reason));
  require(host_context.owner_of(address) == owner, Status::unreachable,
          fmt::format("{} is memory of rank {} outside its heaps and segments, which its engine does not reach: {}",
                      address, owner, why_not_direct(static_cast<int>(owner))));
  return true;
}

/// What the engine refuses of CPU threads' operations concerns their callers at once.
void World::Implementation::require_not_refused() const {
  const CommandRing& ring = *host_context.routes->queue(QueueId{}.index).ring;
  if (detail::load_acquired(ring.refused.value) == 0) return;
  const RefusedCommand& first = host_header(rank)->refused_command;
  const bool is_known = detail::load_acquired(first.complete) != 0;
  throw Error(Status::invalid_argument, is_known ? first.text : "this rank's engine refused an operation", rank);
}

void World::Implementation::copy_by_engine(void* destination, const void* source, std::size_t bytes) {
  // An abort ends neither: the caller may free memory then, which the engine goes on to use.
  const auto carry = [this](Verb verb, const void* remote, const void* local, std::size_t count) {
    const detail::Request request = detail::move_request(verb == Verb::put, host_context.owner_of(remote));
    Status status = detail::move_by_engine(Thread{}, host_context, request, QueueId{}, remote, {local, 1, count, 0, 0});
    if (status == Status::ok && verb == Verb::put)
      status = detail::drain_route(Thread{}, host_context, Operation::quiet, QueueId{}, false);
    if (status != Status::ok) fail(status, world_id);
    require_not_refused();
  };
  const bool to_far = needs_engine(destination), from_far = needs_engine(source);
  const std::size_t most = std::min(bytes, config.chunk_bytes);  // each has the deadline for itself
  std::vector<std::byte> bounce(to_far && from_far ? most : 0);
  try {
    for (std::size_t done = 0; done < bytes; done += most) {
      const std::size_t piece = std::min(most, bytes - done);
      auto* const to = static_cast<std::byte*>(destination) + done;
      const auto* const from = static_cast<const std::byte*>(source) + done;
      if (from_far) carry(Verb::get, from, to_far ? bounce.data() : to, piece);
      if (to_far) carry(Verb::put, to, from_far ? bounce.data() : from, piece);
    }
  } catch (...) {
    const std::lock_guard<std::mutex> lock(failure_mutex);
    abandoned.push_back(std::move(bounce));
    throw;
  }
}

void World::Implementation::require_direct(const Team& team, const char* what) const {
  const auto refuse = [&](int asking, int peer, std::string_view reason) {
    require(reason.empty(), Status::unreachable,
            fmt::format("{}: not with these ranks, since rank {} does not reach rank {} by loads and stores: {}", what,
                        asking, peer, reason));
  };
  for (int to = 0; to < team.size(); ++to)
    if (const int peer = team.world_rank(to); !is_near(peer)) refuse(rank, peer, why_not_direct(peer));
  for (int from = 0; from < team.size(); ++from)
    for (int to = 0; to < team.size(); ++to) {
      const int asking = team.world_rank(from), peer = team.world_rank(to);
      refuse(asking, peer, host_header(asking)->route_reasons[peer]);
    }
}

std::unique_ptr<Stream> World::Implementation::make_stream(StreamPriority priority) {
  if (gpu_reach) return routed(make_host_stream(device(), host_context, lend_grid_state(), gpu_reach.get()));
  return routed(beeline::make_stream(device(), host_context, lend_grid_state(), priority));
}

std::unique_ptr<Stream> World::Implementation::make_waiting_stream(const Context& context) {
  if (gpu_reach) return routed(make_host_stream(device(), context, nullptr, gpu_reach.get()));
  return routed(beeline::make_stream(device(), context, nullptr));
}

std::unique_ptr<Stream> World::Implementation::adopt_stream(void* native) {
  return routed(adopt_gpu_stream(device(), lend_grid_state(), native));
}

std::unique_ptr<Stream> World::Implementation::routed(std::unique_ptr<Stream> own) {
  if (!stages_copies() && engine == nullptr) return own;
  StreamRoutes how;
  how.device_of = [this, stages = stages_copies()](const void* address) { return stages ? device_for(address) : -1; };
  how.make_stream = [this](int index) {
    Device there = device();
    if (there.is_gpu()) there.index = index;
    return beeline::make_stream(there, host_context, nullptr);
  };
  how.chunk_bytes = config.chunk_bytes;
  how.pinned = device().is_gpu();
  how.needs_engine = [this](const void* address) { return engine != nullptr && needs_engine(address); };
  how.copy_by_engine = [this](Stream& inner, void* to, const void* from, std::size_t bytes) {
    carry_copy(*world, inner, to, from, bytes);
  };
  how.fill_by_engine = [this](Stream& inner, void* to, unsigned char value, std::size_t bytes) {
    carry_fill(*world, inner, to, value, bytes);
  };
  how.signal_by_engine = [this](Stream& inner, std::uint64_t* signal, std::uint64_t value) {
    carry_signal(*world, inner, signal, value);
  };
  return make_bounce_stream(std::move(own), std::move(how));
}

}  // namespace beeline
