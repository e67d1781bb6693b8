// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/world.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <tuple>
#include <utility>

#include "beeline/device/barrier.hpp"
#include "beeline/device/group.hpp"
#include "host/profiler_range.hpp"
#include "host/world_implementation.hpp"
#include "runtime/rank_list.hpp"
#include "transport/checks.hpp"

namespace beeline {

std::unique_ptr<World> World::create(const Config& config, Version headers) {
  detail::require_same_version("World::create", headers, detail::world_headers);
  const detail::ProfilerRange range("join the world");
  require(!config.threads || config.size == 1, Status::invalid_argument,
          "ranks are to be threads (--threads, BEELINE_THREADS=1), which only programs that call beeline::run or "
          "beeline_run make; without --threads this program's ranks are processes");
  require(config.size >= 1 && config.size <= static_cast<int>(max_ranks), Status::invalid_argument,
          fmt::format("a world has 1 to {} ranks, not {}", max_ranks, config.size));
  require(config.rank >= 0 && config.rank < config.size, Status::invalid_argument,
          fmt::format("rank {} of a world of {}", config.rank, config.size));
  if (config.size == 1 && config.rendezvous.empty()) return create(config, make_single_bootstrap());
  return create(config, join_world(config));
}

std::unique_ptr<World> World::create(const Config& config, std::unique_ptr<Bootstrap> bootstrap, Version headers) {
  detail::require_same_version("World::create", headers, detail::world_headers);
  const detail::ProfilerRange range("make the world");
  require(
      config.split_nodes <= config.size, Status::invalid_argument,
      fmt::format("{} nodes of a machine (BEELINE_SPLIT_NODES, --split-nodes) for a world of {}: each has one rank at "
                  "least",
                  config.split_nodes, config.size));
  return std::unique_ptr<World>(new World(std::make_unique<Implementation>(config, std::move(bootstrap))));
}

World::World(std::unique_ptr<Implementation> implementation)
    : Team(*this, implementation->contexts->make(Teams::world_id, implementation->membership->everyone(), false),
           implementation->contexts->host()),
      implementation_(std::move(implementation)) {
  implementation_->world = this;
}
World::~World() {
  if (implementation_->process.is_forked()) {  // threads and membership belong to the parent
    static_cast<void>(implementation_.release());
    return;
  }
  try {
    if (!failed() && std::uncaught_exceptions() == 0) leave();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("leaving the world: {}", error.what()), rank());
  }
  life()->end();
  implementation_->streams->end_handed(failed());
}

void World::leave() {
  if (implementation_->has_left) return;
  check_collective();
  synchronize();
  if (implementation_->membership->spans_nodes()) {
    const Context& among = implementation_->contexts->host();
    if (const Status status = implementation_->drain_engine(among, Timeout::none()); status != Status::ok)
      implementation_->failures->fail(status, among.team);
  }
  static_cast<void>(implementation_->exchange("leave", {}, config().stream_deadline_ns));
  implementation_->has_left = true;
  implementation_->bootstrap->leave();
}

const Device& World::device() const { return implementation_->membership->device(); }
const Device& World::device(int rank) const {
  require(rank >= 0 && rank < size(), Status::invalid_argument, fmt::format("rank {} of a world of {}", rank, size()));
  return implementation_->membership->of(rank).device;
}
int World::node(int rank) const {
  require(rank >= 0 && rank < size(), Status::invalid_argument, fmt::format("rank {} of a world of {}", rank, size()));
  return implementation_->membership->of(rank).node;
}
const Config& World::config() const { return implementation_->config; }
bool World::mixed() const { return implementation_->membership->has_both_kinds(); }
int World::ranks_on_device() const { return implementation_->membership->sharers().all; }
bool World::global_addresses() const { return implementation_->memory->node().global_addresses(); }

int World::owner_of(const void* address) const {
  return static_cast<int>(implementation_->memory->addresses().owner_of(address));
}

void* World::symmetric_address(const void* address) const {
  const Context& ctx = host_context();
  const std::uint64_t alias = implementation_->memory->aliases().offset_in_array(address);
  require(alias != 0 || ctx.owner_of(address) != no_peer, Status::invalid_argument,
          fmt::format("{} is in no rank's heap or segment, and in no array over several nodes", address));
  return implementation_->memory->range().slot(rank()) + (alias != 0 ? alias : ctx.offset_in_slot(address));
}

const Segment& World::create_segment(MemoryKind kind, std::size_t bytes) {
  const Segment& segment = implementation_->meet_in("create_segment", [&]() -> const Segment& {
    return implementation_->memory->node().create_segment(kind, bytes);
  });
  const SegmentPart& mine = segment.parts[static_cast<std::size_t>(rank())];
  if (mine.bytes > 0 && kind == MemoryKind::device)
    implementation_->zero(mine.address, mine.bytes);  // host memory is made zero
  barrier();
  return segment;
}

void World::destroy_segment(std::uint32_t id) {
  implementation_->meet_in("destroy_segment", [&] { implementation_->memory->node().destroy_segment(id); });
}

Stream& World::stream() { return implementation_->streams->main(); }
std::unique_ptr<Stream> World::make_stream(StreamPriority priority) {
  implementation_->process.require();
  return implementation_->streams->handed().hand_out(implementation_->streams->make(priority));
}
std::unique_ptr<Stream> World::adopt_stream(void* native) {
  implementation_->process.require();
  require(device().is_gpu(), Status::unavailable,
          fmt::format("rank {} has no GPU, so it cannot adopt a CUDA stream", rank()));
  return implementation_->streams->handed().hand_out(implementation_->streams->adopt(native));
}

Status World::synchronize(Stream& stream, Timeout timeout) {
  const TeamSet watched = implementation_->teams->concerned_by(stream);
  try {
    const auto over = [&stream] { return stream.idle(); };
    const Status status =
        implementation_->await("a stream", config().stream_deadline_ns, over, watched, &stream, timeout);
    if (status != Status::ok) return status;
  } catch (const Error& error) {
    if (error.code() == Status::deadline || error.code() == Status::aborted || error.code() == Status::invalid_argument)
      implementation_->failures->check(watched | Teams::world_only);
    throw;
  }
  implementation_->failures->check(watched);
  stream.launched_teams().forget();
  implementation_->check_refusals();
  return Status::ok;
}

Status World::synchronize(Event& event, Timeout timeout) {
  const TeamSet watched = (event.teams & implementation_->teams->living()) | Teams::world_only;
  const auto over = [&event] { return event.done(); };
  const Status status =
      implementation_->await("an event", config().stream_deadline_ns, over, watched, nullptr, timeout);
  if (status != Status::ok) return status;
  implementation_->failures->check(watched);
  return Status::ok;
}

Status World::Implementation::barrier(const Context& among, Timeout timeout) {
  failures->check(team_set(among.team));  // others may have entered before the failure; this is no barrier
  const auto meet = [timeout](const Context& direct) {
    return beeline::barrier(Thread{}, direct, Order::memory, timeout);
  };
  Status status;
  if (among.has_routes != 0 && membership->spans_nodes()) {
    status = barrier_across_nodes(among, timeout);
  } else if (among.has_routes == 0) {
    status = meet(among);
  } else {
    Context direct = among;
    direct.set_routes(nullptr);  // the words are in the node's control blocks, which all its ranks reach
    status = meet(direct);
  }
  if (status != Status::ok && status != Status::timeout) failures->fail(status, among.team);
  return status;
}

void World::Implementation::begin_collective(const Context& among) {
  failures->check(team_set(among.team));
  if (among.sync->entered.value != among.sync->completed.value)
    throw Error(Status::invalid_argument,
                fmt::format("rank {}'s last barrier timed out: call it again until it returns ok", rank()));
}

void World::Implementation::begin_collective(const char* call) {
  begin_collective(contexts->barrier());
  bootstrap->enter(call);
}

std::vector<std::vector<std::byte>> World::Implementation::exchange(const char* call, std::span<const std::byte> mine,
                                                                    std::int64_t wait_ns) {
  return meet_in(call, [&] { return bootstrap->allgather(mine, wait_ns); });
}

namespace {

/// An error's first line, without the words that announce further lines; other ranks list those in their own errors.
std::string first_line(const std::string& reason) {
  const std::size_t end = reason.find('\n');
  if (end == std::string::npos) return reason;
  const std::string line = reason.substr(0, end);
  return line.ends_with(':') ? line.substr(0, line.rfind(';')) : line;
}

}  // namespace

void World::abort(const std::string& reason) {
  implementation_->process.require();
  const std::string line = detail::without_rank(first_line(reason), rank());
  implementation_->failures->note_end(rank(), line);
  implementation_->failures->raise_with_cause(Status::peer_died, fmt::format("rank {} aborted: {}", rank(), line),
                                              implementation_->contexts->barrier());
  implementation_->bootstrap->abort(line);
}

void World::check_collective() { implementation_->begin_collective(implementation_->contexts->barrier()); }
void World::check() { implementation_->failures->check(implementation_->teams->living()); }
std::vector<RankHealth> World::health() const {
  implementation_->process.require();
  return implementation_->bootstrap->health();
}
std::vector<WaitRecord> World::failed_waits() const {
  implementation_->process.require();
  return implementation_->failures->waits();
}

template <class Part>
Part& world_part(const World& world) {
  const World::Implementation& all = world.implementation();
  return *std::get<const std::unique_ptr<Part>&>(std::tie(all.membership, all.teams, all.memory, all.routes,
                                                          all.failures, all.contexts, all.engines, all.launches,
                                                          all.grids, all.streams));
}
template Membership& world_part(const World&);
template Teams& world_part(const World&);
template MemoryMap& world_part(const World&);
template Routes& world_part(const World&);
template Failures& world_part(const World&);
template Contexts& world_part(const World&);
template Engines& world_part(const World&);
template Launches& world_part(const World&);
template Grids& world_part(const World&);
template Streams& world_part(const World&);

PathToRank path_to(World& world, int rank) {
  require(rank >= 0 && rank < world.size(), Status::invalid_argument,
          fmt::format("rank {} of a world of {}", rank, world.size()));
  return world.implementation().routes->describe(rank);
}

NetworkStatistics network_statistics(const World& world) {
  const Engine* const engine = world.implementation().engines->of_peers();
  return engine != nullptr ? engine->network_statistics() : NetworkStatistics{};
}

}  // namespace beeline
