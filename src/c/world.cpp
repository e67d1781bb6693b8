// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <vector>

#include "beeline/host/run.hpp"
#include "c/call.hpp"
#include "core/setting.hpp"

using namespace beeline;
using c::guarded;
using c::object_of;

namespace {

static_assert(sizeof(beeline_device) == 224 && offsetof(beeline_device, memory_bytes) == 16);
static_assert(offsetof(beeline_device, node) == 28 && offsetof(beeline_device, uuid) == 32);
static_assert(offsetof(beeline_device, name) == 96);
static_assert(sizeof(beeline_health) == 256 && offsetof(beeline_health, state) == 4);
static_assert(offsetof(beeline_health, noticed_by) == 8 && offsetof(beeline_health, reason) == 12);
static_assert(BEELINE_HOST == static_cast<int>(DeviceKind::host) && BEELINE_GPU == static_cast<int>(DeviceKind::gpu));
static_assert(BEELINE_ROUTE_DIRECT == static_cast<int>(PeerAccess::direct));
static_assert(BEELINE_ROUTE_ENGINE == static_cast<int>(PeerAccess::engine));
static_assert(BEELINE_ROUTE_REFUSED == static_cast<int>(PeerAccess::refused));
static_assert(BEELINE_HEALTHY == static_cast<int>(RankState::healthy));
static_assert(BEELINE_FAILED == static_cast<int>(RankState::failed));
static_assert(BEELINE_LEFT == static_cast<int>(RankState::left));

// The C structure has the members of the kernels' `Context` at the same offsets, which are listed beside `Context`.
#define SAME_OFFSET(member) static_assert(offsetof(beeline_context, member) == offsetof(Context, member))
SAME_OFFSET(range);
SAME_OFFSET(abort_words);
SAME_OFFSET(host_abort_words);
SAME_OFFSET(waits);
SAME_OFFSET(wait_claims);
SAME_OFFSET(sync);
SAME_OFFSET(deadline_ns);
SAME_OFFSET(slot_shift);
SAME_OFFSET(slots);
SAME_OFFSET(polling);
SAME_OFFSET(team);
SAME_OFFSET(rank);
SAME_OFFSET(size);
SAME_OFFSET(own_world_rank);
SAME_OFFSET(mixed);
SAME_OFFSET(resident);
SAME_OFFSET(kernel);
SAME_OFFSET(gpu_members);
SAME_OFFSET(guarded_offsets);
SAME_OFFSET(routes);
SAME_OFFSET(direct_places);
SAME_OFFSET(first_place);
SAME_OFFSET(places);
SAME_OFFSET(has_routes);
SAME_OFFSET(distances);
SAME_OFFSET(heap_end);
SAME_OFFSET(pinned_heap_end);
SAME_OFFSET(checks);
#undef SAME_OFFSET
static_assert(sizeof(beeline_context) == sizeof(Context) && BEELINE_MAX_NODE_RANKS == max_node_ranks);

void require_version(const char* function, std::int32_t version) {
  detail::require_same_version(function, {version, 0}, {BEELINE_VERSION, 0});
}

Config config_of(const beeline_config* given) {
  return given == nullptr ? Config::from_environment() : object_of(given, "config").config;
}

/// Copies a text, truncated to the size of the array.
template <std::size_t size>
void copy_text(char (&to)[size], const std::string& text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = '\0';
}

World& world_of(const beeline_world* handle) { return *object_of(handle, "world").world; }

/// The handle's team; for a bad handle sets an error text and returns nullptr.
const Team* team_of(const char* function, const beeline_team* handle) {
  const Team* team = nullptr;
  static_cast<void>(guarded(function, [&] { team = object_of(handle, "team").team; }));
  return team;
}
/// Returns `ask(team)`; for a bad handle or a rank outside the team sets an error text and returns -1.
template <class Ask>
std::int32_t number_of(const char* function, const beeline_team* handle, std::int32_t rank, const Ask& ask) {
  std::int32_t number = -1;
  static_cast<void>(guarded(function, [&] {
    const Team& team = *object_of(handle, "team").team;
    number = ask(team, c::peer_of(team, rank, "rank"));
  }));
  return number;
}

beeline_status copy_context(const char* function, const beeline_team* handle, std::size_t struct_bytes,
                            beeline_context* to, const Context& (Team::*context)() const) {
  return guarded(function, [&] {
    const Team& team = *object_of(handle, "team").team;
    c::require_pointer(to, "context");
    if (struct_bytes != sizeof(Context))
      c::refuse("struct_bytes",
                fmt::format("{}, and a context has {} bytes in this library", struct_bytes, sizeof(Context)));
    std::memcpy(to, &(team.*context)(), sizeof(Context));
  });
}

}  // namespace

beeline_status beeline_config_create(beeline_config** config) noexcept {
  return guarded("beeline_config_create", [&] {
    c::require_pointer(config, "config");
    *config = std::make_unique<beeline_config>(Config::from_environment()).release();
  });
}

beeline_status beeline_config_set(beeline_config* config, const char* name, const char* value) noexcept {
  return guarded("beeline_config_set", [&] {
    Config& of = object_of(config, "config").config;
    c::require_pointer(name, "name");
    c::require_pointer(value, "value");
    detail::set(of, name, value);
  });
}

beeline_status beeline_config_destroy(beeline_config* config) noexcept {
  return guarded("beeline_config_destroy", [&] { delete &object_of(config, "config"); });
}

beeline_status beeline_world_create_as(int32_t version, const beeline_config* config, beeline_world** world) noexcept {
  return guarded("beeline_world_create", [&] {
    require_version("beeline_world_create", version);
    c::require_pointer(world, "world");
    std::unique_ptr<World> made = World::create(config_of(config));
    auto handle = std::make_unique<beeline_world>(*made);
    handle->own = std::move(made);
    *world = handle.release();
  });
}

beeline_status beeline_run_as(int32_t version, const beeline_config* config,
                              int32_t (*body)(beeline_world* world, void* argument), void* argument,
                              int32_t* exit_status) noexcept {
  return guarded("beeline_run", [&] {
    require_version("beeline_run", version);
    if (body == nullptr) c::refuse("body", "a null pointer");
    c::require_pointer(exit_status, "exit_status");
    *exit_status = run(config_of(config), [&](World& world) {
      beeline_world handle(world);
      const int32_t status = body(&handle, argument);
      require(status == 0, Status::aborted, fmt::format("the function of beeline_run returned {}", status));
    });
  });
}

beeline_status beeline_world_close(beeline_world* world) noexcept {
  return guarded("beeline_world_close", [&] {
    beeline_world& closed = object_of(world, "world");
    if (closed.own == nullptr) c::refuse("world", "beeline_run made this world, and ends it");
    { const c::ExclusiveCall refuses_others(closed.team, "beeline_world_close"); }
    const std::unique_ptr<beeline_world> handle(world);
    closed.own->leave();
  });
}

beeline_team* beeline_world_team(beeline_world* world) noexcept {
  beeline_team* team = nullptr;
  static_cast<void>(guarded("beeline_world_team", [&] { team = &object_of(world, "world").team; }));
  return team;
}

beeline_status beeline_world_device(const beeline_world* world, int32_t rank, beeline_device* device) noexcept {
  return guarded("beeline_world_device", [&] {
    World& of = world_of(world);
    beeline_device& to = c::structure_of(device, "device");
    const Device& from = of.device(static_cast<int>(c::peer_of(of, rank, "rank")));
    to.kind = static_cast<std::int32_t>(from.kind), to.index = from.index;
    to.multiprocessors = from.multiprocessors, to.memory_bytes = from.memory_bytes;
    to.host_atomics = from.host_atomics ? 1 : 0, to.node = of.node(rank);
    copy_text(to.uuid, from.uuid);
    copy_text(to.name, from.name);
  });
}

beeline_status beeline_world_health(const beeline_world* world, int32_t rank, beeline_health* health) noexcept {
  return guarded("beeline_world_health", [&] {
    World& of = world_of(world);
    beeline_health& to = c::structure_of(health, "health");
    const RankHealth from = of.health()[c::peer_of(of, rank, "rank")];
    to.state = static_cast<std::int32_t>(from.state), to.noticed_by = from.noticed_by;
    copy_text(to.reason, from.reason);
  });
}

beeline_status beeline_world_check(beeline_world* world) noexcept {
  return guarded("beeline_world_check", [&] { world_of(world).check(); });
}

beeline_status beeline_world_abort(beeline_world* world, const char* reason) noexcept {
  return guarded("beeline_world_abort", [&] {
    World& aborted = world_of(world);
    c::require_pointer(reason, "reason");
    aborted.abort(reason);
  });
}

beeline_status beeline_world_survivors(beeline_world* world, beeline_team** team) noexcept {
  return c::collective_of_world("beeline_world_survivors", world, [&](World& of) {
    c::require_pointer(team, "team");
    *team = std::make_unique<beeline_team>(*world, &of.survivors()).release();
  });
}

beeline_status beeline_team_create(beeline_world* world, const int32_t* ranks, int32_t count,
                                   beeline_team** team) noexcept {
  return c::collective_of_world("beeline_team_create", world, [&](World& of) {
    c::require_pointer(team, "team");
    if (count < 0) c::refuse("count", fmt::format("{} ranks", count));
    c::require_memory(ranks, static_cast<std::size_t>(count), "ranks");
    std::unique_ptr<Team> made = of.make_team(count == 0 ? std::vector<int>() : std::vector<int>(ranks, ranks + count));
    Team* const plain = made.get();
    *team = plain == nullptr ? nullptr : std::make_unique<beeline_team>(*world, plain, std::move(made)).release();
  });
}

beeline_status beeline_team_destroy(beeline_team* team) noexcept {
  return guarded("beeline_team_destroy", [&] {
    beeline_team& ended = object_of(team, "team");
    if (ended.own == nullptr && ended.team == &ended.team->world())
      c::refuse("team", "the world's, which ends with it");
    delete &ended;
  });
}

int32_t beeline_team_rank(const beeline_team* team) noexcept {
  const Team* const of = team_of("beeline_team_rank", team);
  return of == nullptr ? -1 : of->rank();
}
int32_t beeline_team_size(const beeline_team* team) noexcept {
  const Team* const of = team_of("beeline_team_size", team);
  return of == nullptr ? -1 : of->size();
}
int32_t beeline_team_failed(const beeline_team* team) noexcept {
  const Team* const of = team_of("beeline_team_failed", team);
  return of == nullptr ? -1 : of->failed() ? 1 : 0;
}
int32_t beeline_team_world_rank(const beeline_team* team, int32_t rank) noexcept {
  return number_of("beeline_team_world_rank", team, rank,
                   [](const Team& of, std::uint32_t member) { return of.world_rank(static_cast<int>(member)); });
}
int32_t beeline_team_route(const beeline_team* team, int32_t rank) noexcept {
  return number_of("beeline_team_route", team, rank, [](const Team& of, std::uint32_t member) {
    return static_cast<std::int32_t>(of.host_context().access_to(member).access);
  });
}

beeline_status beeline_barrier(beeline_team* team, uint64_t timeout_ns) noexcept {
  return c::collective("beeline_barrier", team, [&](Team& of) { return of.barrier(Timeout{timeout_ns}); });
}

beeline_status beeline_allgather_bytes(beeline_team* team, const void* mine, size_t bytes, void* all, size_t most_bytes,
                                       size_t* sizes) noexcept {
  return c::collective("beeline_allgather_bytes", team, [&](Team& of) {
    c::require_memory(mine, bytes, "mine");
    c::require_memory(all, most_bytes, "all");
    c::require_pointer(sizes, "sizes");
    const auto everyones = of.allgather({static_cast<const std::byte*>(mine), bytes});
    for (std::size_t member = 0; member < everyones.size(); ++member)
      if (everyones[member].size() > most_bytes)
        c::refuse("most_bytes",
                  fmt::format("{}, and member {} passes {} bytes", most_bytes, member, everyones[member].size()));
    for (std::size_t member = 0; member < everyones.size(); ++member) {
      sizes[member] = everyones[member].size();
      if (sizes[member] != 0)
        std::memcpy(static_cast<std::byte*>(all) + member * most_bytes, everyones[member].data(), sizes[member]);
    }
  });
}

beeline_status beeline_team_context(const beeline_team* team, size_t struct_bytes, beeline_context* context) noexcept {
  return copy_context("beeline_team_context", team, struct_bytes, context, &Team::context);
}
beeline_status beeline_team_host_context(const beeline_team* team, size_t struct_bytes,
                                         beeline_context* context) noexcept {
  return copy_context("beeline_team_host_context", team, struct_bytes, context, &Team::host_context);
}
