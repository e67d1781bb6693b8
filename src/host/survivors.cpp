// SPDX-License-Identifier: Apache-2.0
// Continuing after a failure: agreement on the survivors, and a reset of their state.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "host/world_implementation.hpp"
#include "memory/allocator_union.hpp"
#include "runtime/deadline.hpp"

namespace beeline {

namespace {

/// A rank that has asked for the survivors has at least this time to complete the messages to it, also after the
/// deadline.
constexpr std::int64_t least_settling_ns = 1'000'000'000;
constexpr std::int64_t longest_ns = INT64_MAX / 4;

/// Ends the remaining work of this rank's streams, since its waits would outlast the abort and fail the continuing
/// world. Drops the results of this work, which belong to the failed world.
void drain(World& world) {
  World::Implementation& implementation = world.implementation();
  try {
    if (implementation.failures->failed()) implementation.streams->handed().release_waits();
    implementation.await(
        "a stream", world.config().deadline_ns,
        [&] { return world.stream().drained() && implementation.streams->handed().drained(); },
        implementation.teams->living(), &world.stream());
    static_cast<void>(world.stream().idle());
  } catch (const std::exception& error) {
    log(LogLevel::info, error.what(), world.rank());
  }
  world.stream().launched_teams().forget();
  implementation.streams->handed().drop_results();
}

/// Whether one of two ranks has lost the other.
///   lost  [ranks] each rank's losses, a byte for each peer; empty for ranks that have ended
bool are_apart(const std::vector<std::vector<std::byte>>& lost, int a, int b) {
  const auto has_lost = [&lost](int one, int other) {
    const auto& theirs = lost[static_cast<std::size_t>(one)];
    return static_cast<std::size_t>(other) < theirs.size() && theirs[static_cast<std::size_t>(other)] != std::byte{0};
  };
  return has_lost(a, b) || has_lost(b, a);
}

/// Collective. The smallest of all ranks' numbers.
std::int64_t least_of(Bootstrap& bootstrap, std::int64_t mine, std::int64_t deadline_ns) {
  std::int64_t least = mine;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), deadline_ns)) {
    std::int64_t theirs = least;  // of a rank that has ended
    if (bytes.size() == sizeof theirs) std::memcpy(&theirs, bytes.data(), sizeof theirs);
    least = std::min(least, theirs);
  }
  return least;
}

/// Logs when each step of the continuation ended, by the machine's steady clock, which all its ranks share.
class Steps {
 public:
  explicit Steps(int rank) : rank_(rank), last_(machine::clock_ns()) {}
  void ended(std::string_view step) {
    const std::uint64_t now = machine::clock_ns();
    if (log_enabled(LogLevel::info))
      log(LogLevel::info,
          fmt::format("survivors: {:.3f} s: {} in {:.3f} s", seconds(now), step,
                      seconds(now - std::exchange(last_, now))),
          rank_);
  }

 private:
  static double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

  const int rank_;
  std::uint64_t last_;
};

}  // namespace

Team& World::survivors(std::int64_t deadline_ns) {
  require(deadline_ns >= 0, Status::invalid_argument, fmt::format("survivors: a deadline of {} ns", deadline_ns));
  Implementation& world = *implementation_;
  Steps steps(rank());
  drain(*this);
  steps.ended("streams drained");
  world.bootstrap->enter("survivors");
  const std::vector<int> left = world.agree_on_connected(deadline_ns == 0 ? world.config.deadline_ns : deadline_ns);
  steps.ended("ranks agreed");
  world.regroup(left);
  steps.ended("state reset");
  world.survivors = make_team(left);
  steps.ended("team made");
  return *world.survivors;
}

std::vector<int> World::Implementation::agree_on_connected(std::int64_t deadline_ns) {
  for (Steps steps(rank());;) {
    const detail::Deadline deadline(deadline_ns);
    const std::vector<int> left = bootstrap->agree_on_survivors(deadline_ns);
    steps.ended("all healthy ranks asked");
    if (engines->of_peers() == nullptr) return left;
    std::vector<std::byte> lost(static_cast<std::size_t>(membership->size()));
    // All ranks in `left` have asked, so they are alive; the engine of one may be busy, for example in the driver of a
    // GPU. The others wait for it until the deadline of the first that has asked.
    const std::int64_t remaining_ns = least_of(*bootstrap, deadline.remaining_ns(), config.deadline_ns);
    const std::int64_t settling_ns = std::clamp(remaining_ns, least_settling_ns, longest_ns);
    for (const int peer : engines->of_peers()->settle(left, settling_ns))
      lost[static_cast<std::size_t>(peer)] = std::byte{1};
    steps.ended("messages to them completed");
    // A rank that has waited for another in vain, and then for those behind it, comes later than the rest.
    const auto all = bootstrap->allgather(lost, 2 * settling_ns + std::min(config.deadline_ns, longest_ns));
    std::vector<int> connected;
    for (const int each : left) {
      const auto apart =
          std::find_if(connected.begin(), connected.end(), [&](int kept) { return are_apart(all, kept, each); });
      if (apart == connected.end())
        connected.push_back(each);
      else if (each == rank())
        leave_out(*apart);
    }
    if (connected == left) return left;
  }
}

void World::Implementation::leave_out(int kept) {
  const std::string text =
      fmt::format("it lost its connection to rank {}: of the two, the rank with the lower number goes on", kept);
  is_left_out = true;
  engines->of_peers()->forget_failures();  // from then on this rank's losses do not affect the survivors
  bootstrap->abort(text);
  throw Error(Status::unreachable, fmt::format("rank {} is not among those that are left: {}", rank(), text), rank());
}

void World::Implementation::regroup(const std::vector<int>& left) {
  survivors.reset();
  for (const int rank : membership->everyone())
    if (std::find(left.begin(), left.end(), rank) == left.end()) routes->lose(rank);
  Steps steps(rank());
  teams->set_world(left);
  memory->heaps().unite(*bootstrap, config.deadline_ns);
  memory->node().align_segments();
  if (memory->aliases().is_used()) unite_allocators(*bootstrap, {&memory->aliases().offsets()}, config.deadline_ns);
  steps.ended("allocations compared");
  if (engines->of_peers() != nullptr) engines->of_peers()->forget_failures();
  static_cast<void>(engines->take_refusals());  // of commands from before the loss, which the caller knows
  const std::uint32_t id = agree_on_free_id();
  failures->clear(Teams::world_id);
  failures->forget_waits(~teams->living());
  failures->clear(id);
  teams->set_barrier_id(id);
  contexts->regroup(id, left);
  failures->raise_missed_ends(Teams::world_id);
  steps.ended("words of the world cleared");
  bootstrap->barrier(config.deadline_ns);  // no rank enters a barrier before all have cleared its state
}

std::uint32_t World::Implementation::agree_on_free_id() {
  const TeamSet mine = teams->free_ids();
  TeamSet common = mine;
  for (const auto& bytes : bootstrap->allgather(std::as_bytes(std::span(&mine, 1)), config.deadline_ns)) {
    TeamSet theirs = ~TeamSet{0};  // for a rank that has ended
    if (bytes.size() == sizeof theirs) std::memcpy(&theirs, bytes.data(), sizeof theirs);
    common &= theirs;
  }
  require(common != 0, Status::no_resource,
          "no team id is left: those of teams whose members ended are not used again");
  return static_cast<std::uint32_t>(std::countr_zero(common));
}

}  // namespace beeline
