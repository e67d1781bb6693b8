// SPDX-License-Identifier: Apache-2.0
// Going on after a failure: agreeing on who is left, and a clean start for them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "beeline/device/wait.hpp"
#include "host/world_implementation.hpp"
#include "memory/allocator_union.hpp"

namespace beeline {

namespace {

/// Ends the remaining work of this rank's streams, whose waits would outlast the abort and end the world that goes on,
/// and drops its results, which belong to the failed world.
void drain(World& world) {
  World::Implementation& implementation = world.implementation();
  try {
    if (implementation.failed()) implementation.handed_streams.release_waits();
    implementation.await(
        "a stream", world.config().deadline_ns,
        [&] { return world.stream().drained() && implementation.handed_streams.drained(); },
        implementation.living_teams(), &world.stream());
    static_cast<void>(world.stream().idle());
  } catch (const std::exception& error) {
    log(LogLevel::info, error.what(), world.rank());
  }
  world.stream().launched_teams().forget();
  implementation.handed_streams.drop_results();
}

/// Whether one of two ranks has lost the other.
///   lost  [ranks] what each has said: a byte for each peer; of ranks that are gone nothing
bool are_apart(const std::vector<std::vector<std::byte>>& lost, int a, int b) {
  const auto has_lost = [&lost](int one, int other) {
    const auto& theirs = lost[static_cast<std::size_t>(one)];
    return static_cast<std::size_t>(other) < theirs.size() && theirs[static_cast<std::size_t>(other)] != std::byte{0};
  };
  return has_lost(a, b) || has_lost(b, a);
}

}  // namespace

Team& World::survivors() {
  Implementation& world = *implementation_;
  drain(*this);
  world.bootstrap->enter("survivors");
  const std::vector<int> left = world.agree_on_connected();
  world.regroup(left);
  world.survivors = make_team(left);
  return *world.survivors;
}

std::vector<int> World::Implementation::agree_on_connected() {
  for (;;) {
    const std::vector<int> left = bootstrap->agree_on_survivors(config.deadline_ns);
    if (engine == nullptr) return left;
    std::vector<std::byte> lost(static_cast<std::size_t>(size));
    for (const int peer : engine->settle(left)) lost[static_cast<std::size_t>(peer)] = std::byte{1};
    const auto all = bootstrap->allgather(lost, config.deadline_ns);
    std::vector<int> connected;
    for (const int each : left) {
      const auto apart =
          std::find_if(connected.begin(), connected.end(), [&](int kept) { return are_apart(all, kept, each); });
      if (apart == connected.end())
        connected.push_back(each);
      else if (each == rank)
        leave_out(*apart);
    }
    if (connected == left) return left;
  }
}

void World::Implementation::leave_out(int kept) {
  const std::string text =
      fmt::format("it lost its connection to rank {}: of the two, the rank with the lower number goes on", kept);
  is_left_out = true;
  engine->forget_failures();  // once it returns, this rank's losses end nothing of those who go on
  bootstrap->abort(text);
  throw Error(Status::unreachable, fmt::format("rank {} is not among those that are left: {}", rank, text), rank);
}

void World::Implementation::regroup(const std::vector<int>& left) {
  survivors.reset();
  {
    const std::lock_guard lock(team_mutex);
    teams[0] = left;
  }
  {
    const std::lock_guard lock(allocation_mutex);
    unite_allocators(*bootstrap, {heap.get(), pinned_heap.get()}, config.deadline_ns);
    map_allocations();
  }
  memory->align_segments();
  if (engine != nullptr) engine->forget_failures();
  const std::uint32_t id = agree_on_free_id();
  clear_team(0);
  forget_waits(~living_teams());
  clear_team(id);
  {
    const std::lock_guard lock(team_mutex);
    barrier_id = id;
  }
  barrier_context = make_context(id, left, true);
  barrier_context.team = 0;  // it waits and aborts as the world
  raise_missed_ends(0);
  bootstrap->barrier(config.deadline_ns);  // no rank enters a barrier before all have cleared its state
}

std::uint32_t World::Implementation::agree_on_free_id() {
  const std::uint32_t mine = free_ids();
  std::uint32_t common = mine;
  for (const auto& bytes : bootstrap->allgather(std::as_bytes(std::span(&mine, 1)), config.deadline_ns)) {
    std::uint32_t theirs = ~0u;  // of a rank that is gone
    if (bytes.size() == sizeof theirs) std::memcpy(&theirs, bytes.data(), sizeof theirs);
    common &= theirs;
  }
  require(common != 0, Status::no_resource,
          "no team id is left: those of teams whose members ended are not used again");
  return static_cast<std::uint32_t>(__builtin_ctz(common));
}

std::uint32_t World::Implementation::free_ids() const {
  const std::lock_guard lock(team_mutex);
  std::uint32_t taken = retired_ids | 1u | 1u << barrier_id;
  for (const auto& [id, ranks] : teams) taken |= 1u << id;
  return ~taken;
}

std::uint32_t World::Implementation::free_ids_among(const std::vector<int>& ranks) const {
  std::uint32_t free = free_ids();
  const std::lock_guard lock(team_mutex);
  for (const auto& [id, members_then] : former_teams)
    for (const int other : members_then)
      if (std::find(ranks.begin(), ranks.end(), other) == ranks.end() &&
          (!is_near(other) || detail::SystemAtomic<std::uint64_t>(host_header(other)->held_teams[id].value)
                                      .load(std::memory_order_acquire) != 0))
        free &= ~(1u << id);
  return free;
}

void World::Implementation::clear_team(std::uint32_t id) {
  detail::SystemAtomic<std::uint64_t>(host_header(rank)->control.abort[id]).store(0, std::memory_order_relaxed);
  zero(&heap_header(rank)->abort[id], sizeof(HeapHeader::abort[id]));
  zero(&heap_header(rank)->teams[id], sizeof(TeamSync));
  std::memset(&host_header(rank)->teams[id], 0, sizeof(TeamSync));
  std::memset(&host_header(rank)->kernel_teams[id], 0, sizeof(TeamSync));
  std::memset(&host_header(rank)->scalars[id], 0, sizeof(HostAreaHeader::scalars[id]));
  if (id == 0) {
    show_meeting(nullptr);
    std::memset(&host_header(rank)->abort_cause, 0, sizeof(AbortCause));
    std::memset(&host_header(rank)->refused_command, 0, sizeof(RefusedCommand));
  }
  forget_waits(1u << id);
}

void World::Implementation::forget_waits(std::uint32_t ids) {
  const auto forget = [ids](WaitTable& table) {
    bool empty = true;
    for (WaitRecord& record : table.records) {
      const detail::SystemAtomic<std::uint32_t> status(record.status);
      if (status.load(std::memory_order_acquire) == 0) continue;
      if ((ids >> record.team & 1u) != 0)
        status.store(0, std::memory_order_relaxed);
      else
        empty = false;
    }
    return empty;
  };
  HostAreaHeader& header = *host_header(rank);
  if (forget(header.control.host_waits))
    detail::DeviceAtomic<std::uint32_t>(header.wait_claims).store(0, std::memory_order_relaxed);
  if (device().is_gpu() && forget(header.control.device_waits))
    zero(&heap_header(rank)->wait_claims, sizeof(HeapHeader::wait_claims));
}

std::uint32_t World::Implementation::living_teams() const {
  const std::lock_guard lock(team_mutex);
  std::uint32_t living = 0;
  for (const auto& [id, ranks] : teams) living |= 1u << id;
  return living;
}

std::uint32_t World::Implementation::teams_of(Stream& stream) {
  const std::uint32_t living = living_teams();
  const std::optional<std::uint32_t> launched = stream.launched_teams().all();
  if (!launched) return living;
  return ((*launched | captured_teams) & living) | (stream.holds_signal_waits() ? world_only : 0);
}

void World::Implementation::note_launch(Stream& stream, const Context& in, bool is_captured) {
  if (is_captured)
    captured_teams |= 1u << in.team;
  else
    stream.launched_teams().note(1u << in.team, in.kernel);
}

bool World::Implementation::knows_kernel(std::uint16_t number) const {
  return number == 0 || shown_kernels[number - 1u].load(std::memory_order_acquire);
}

void World::Implementation::show_kernel(std::uint16_t number, const std::string& name) {
  const std::lock_guard lock(kernel_mutex);
  if (knows_kernel(number)) return;
  name.copy(host_header(rank)->kernel_names[number - 1u], max_kernel_name - 1);  // its end is zero already
  shown_kernels[number - 1u].store(true, std::memory_order_release);
}

std::string World::Implementation::kernel_name(std::uint32_t of, std::uint16_t number) const {
  return number == 0 ? "" : host_header(static_cast<int>(of))->kernel_names[number - 1u];
}

}  // namespace beeline
