// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <utility>

#include "beeline/device/barrier.hpp"
#include "beeline/device/group.hpp"
#include "host/profiler_range.hpp"
#include "host/ranges.hpp"
#include "host/world_implementation.hpp"
#include "runtime/rank_list.hpp"
#include "transport/checks.hpp"

namespace beeline {

std::unique_ptr<World> World::create(const Config& config) {
  const detail::ProfilerRange range("join the world");
  require(
      !config.threads || config.size == 1, Status::invalid_argument,
      "ranks are to be threads (--threads, BEELINE_THREADS=1), which only C++ programs that call beeline::run make; "
      "without --threads this program's ranks are processes");
  require(config.size >= 1 && config.size <= static_cast<int>(max_ranks), Status::invalid_argument,
          fmt::format("a world has 1 to {} ranks, not {}", max_ranks, config.size));
  require(config.rank >= 0 && config.rank < config.size, Status::invalid_argument,
          fmt::format("rank {} of a world of {}", config.rank, config.size));
  if (config.size == 1 && config.rendezvous.empty()) return create(config, make_single_bootstrap());
  return create(config, join_world(config));
}

std::unique_ptr<World> World::create(const Config& config, std::unique_ptr<Bootstrap> bootstrap) {
  const detail::ProfilerRange range("make the world");
  require(
      config.split_nodes <= config.size, Status::invalid_argument,
      fmt::format("{} nodes of a machine (BEELINE_SPLIT_NODES, --split-nodes) for a world of {}: each has one rank at "
                  "least",
                  config.split_nodes, config.size));
  return std::unique_ptr<World>(new World(std::make_unique<Implementation>(config, std::move(bootstrap))));
}

World::World(std::unique_ptr<Implementation> implementation)
    : Team(*this, implementation->make_context(Implementation::world_id, implementation->teams[0], false),
           implementation->host_context),
      implementation_(std::move(implementation)) {
  implementation_->world = this;
}
World::~World() {
  if (implementation_->is_forked()) {  // its threads and its part in the world are the parent's
    static_cast<void>(implementation_.release());
    return;
  }
  try {
    if (!failed() && std::uncaught_exceptions() == 0) leave();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("leaving the world: {}", error.what()), rank());
  }
  life()->end();
  implementation_->end_handed_streams();
}

void World::leave() {
  if (implementation_->has_left) return;
  check_collective();
  synchronize();
  if (implementation_->spans_nodes()) {
    const Context& among = implementation_->host_context;
    if (const Status status = implementation_->drain_engine(among, Timeout::none()); status != Status::ok)
      implementation_->fail(status, among.team);
  }
  static_cast<void>(implementation_->exchange("leave", {}, config().stream_deadline_ns));
  implementation_->has_left = true;
  implementation_->bootstrap->leave();
}

void World::Implementation::end_handed_streams() {
  try {
    if (failed()) {
      stream->release_waits();
      handed_streams.release_waits();
    }
    handed_streams.end();
  } catch (const Error& error) {  // a GPU that works no more holds nothing back
    log(LogLevel::error, fmt::format("leaving a failed world: {}", error.what()), rank);
  }
}

World::Implementation::~Implementation() {
  bootstrap->on_abort(nullptr);  // it uses the copy stream
  stream.reset();
  copy_stream.reset();
  blocking_streams.clear();
  queue_engine.reset();
  engine.reset();
  bootstrap.reset();  // no abort is handled from here on
}

const Device& World::device() const { return implementation_->device(); }
const Device& World::device(int rank) const {
  require(rank >= 0 && rank < size(), Status::invalid_argument, fmt::format("rank {} of a world of {}", rank, size()));
  return implementation_->members[static_cast<std::size_t>(rank)].device;
}
const Config& World::config() const { return implementation_->config; }
bool World::mixed() const {
  const Implementation& world = *implementation_;
  return world.has_gpus() &&
         std::any_of(world.members.begin(), world.members.end(), [](const Member& m) { return !m.device.is_gpu(); });
}
int World::ranks_on_device() const { return implementation_->ranks_on_device; }
bool World::global_addresses() const { return implementation_->memory->global_addresses(); }

int World::owner_of(const void* address) const {
  return static_cast<int>(implementation_->addresses.owner_of(address));
}

World::Implementation::Place World::Implementation::place_of(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto inside = [byte](const std::byte* start, std::size_t bytes) {
    return std::less_equal<>()(start, byte) && std::less<>()(byte, start + bytes);
  };
  if (const std::byte* start = heap_start(rank); inside(start, config.heap_bytes))
    return {heap.get(), static_cast<std::size_t>(byte - start)};
  if (const std::byte* start = pinned_start(rank); inside(start, config.pinned_heap_bytes))
    return {pinned_heap.get(), static_cast<std::size_t>(byte - start)};
  return {};
}

const Segment& World::create_segment(MemoryKind kind, std::size_t bytes) {
  const Segment& segment = implementation_->meet_in(
      "create_segment", [&]() -> const Segment& { return implementation_->memory->create_segment(kind, bytes); });
  const SegmentPart& mine = segment.parts[static_cast<std::size_t>(rank())];
  if (mine.bytes > 0 && kind == MemoryKind::device)
    implementation_->zero(mine.address, mine.bytes);  // host memory is made zero
  barrier();
  return segment;
}

void World::destroy_segment(std::uint32_t id) {
  implementation_->meet_in("destroy_segment", [&] { implementation_->memory->destroy_segment(id); });
}

void World::copy(void* destination, const void* source, std::size_t bytes) {
  const detail::ProfilerRange range("copy");
  implementation_->require_own_process();
  detail::require_extent(*this, {"copy", "destination"}, destination, bytes);
  detail::require_extent(*this, {"copy", "source"}, source, bytes);
  implementation_->write(destination, source, bytes);
}

void World::copy(void* destination, const void* source, std::size_t bytes, Stream& stream) {
  const detail::ProfilerRange range("copy on a stream");
  implementation_->require_own_process();
  detail::require_extent(*this, {"copy", "destination"}, destination, bytes);
  detail::require_extent(*this, {"copy", "source"}, source, bytes);
  implementation_->enqueue_copy(stream, destination, source, bytes);
}

void World::Implementation::write(void* destination, const void* source, std::size_t bytes) {
  if (!moves_anything(destination, source, bytes)) return;
  const bool by_stream = device().is_gpu() || stages_copies();
  if (!by_stream && gpu_reach == nullptr && engine == nullptr) {
    std::memcpy(destination, source, bytes);
    return;
  }
  Stream* used = nullptr;
  for_pieces(destination, source, bytes, [&](std::byte* to, const std::byte* from, std::size_t piece) {
    if (engine != nullptr && (needs_engine(to) || needs_engine(from))) return copy_by_engine(to, from, piece);
    if (!by_stream && (gpu_reach == nullptr || !gpu_reach->needed({to, from}))) {
      std::memcpy(to, from, piece);
      return;
    }
    used = by_stream ? copy_stream.get() : &gpu_reach->stream();
    used->copy(to, from, piece);
  });
  if (used == nullptr) return;
  const std::unique_ptr<Event> event = used->make_event();
  used->record(*event);
  constexpr std::uint32_t whatever_fails = 0;
  await(
      "a copy", config.stream_deadline_ns, [&event] { return event->done(); }, whatever_fails);
}

void World::Implementation::enqueue_copy(Stream& to, void* destination, const void* source, std::size_t bytes) {
  if (!moves_anything(destination, source, bytes)) return;
  for_pieces(destination, source, bytes,
             [&to](std::byte* there, const std::byte* from, std::size_t piece) { to.copy(there, from, piece); });
}

template <class Call>
void World::Implementation::for_pieces(void* destination, const void* source, std::size_t bytes, Call call) const {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  while (bytes > 0) {
    const std::size_t piece = std::min({bytes, addresses.bytes_of_one_owner(to), addresses.bytes_of_one_owner(from)});
    call(to, from, piece);
    to += piece, from += piece, bytes -= piece;
  }
}

Stream& World::stream() { return *implementation_->stream; }
std::unique_ptr<Stream> World::make_stream(StreamPriority priority) {
  implementation_->require_own_process();
  return implementation_->handed_streams.hand_out(implementation_->make_stream(priority));
}
std::unique_ptr<Stream> World::adopt_stream(void* native) {
  implementation_->require_own_process();
  require(device().is_gpu(), Status::unavailable,
          fmt::format("rank {} has no GPU, so it cannot adopt a CUDA stream", rank()));
  return implementation_->handed_streams.hand_out(implementation_->adopt_stream(native));
}

Status World::synchronize(Stream& stream, Timeout timeout) {
  const std::uint32_t watched = implementation_->teams_of(stream);
  try {
    const auto over = [&stream] { return stream.idle(); };
    const Status status =
        implementation_->await("a stream", config().stream_deadline_ns, over, watched, &stream, timeout);
    if (status != Status::ok) return status;
  } catch (const Error& error) {
    if (error.code() == Status::deadline || error.code() == Status::aborted || error.code() == Status::invalid_argument)
      implementation_->check(watched | Implementation::world_only);
    throw;
  }
  implementation_->check(watched);
  stream.launched_teams().forget();
  implementation_->check_refusals();
  return Status::ok;
}

void World::Implementation::await_default_stream() {
  refuse_captured(*stream, "freeing memory", "it waits for the default stream");
  constexpr std::uint32_t whatever_fails = 0;
  await(
      "the default stream", config.stream_deadline_ns, [this] { return stream->drained(); }, whatever_fails,
      stream.get());
}

Status World::synchronize(Event& event, Timeout timeout) {
  const std::uint32_t watched = (event.teams & implementation_->living_teams()) | Implementation::world_only;
  const auto over = [&event] { return event.done(); };
  const Status status =
      implementation_->await("an event", config().stream_deadline_ns, over, watched, nullptr, timeout);
  if (status != Status::ok) return status;
  implementation_->check(watched);
  return Status::ok;
}

Status World::Implementation::barrier(const Context& among, Timeout timeout) {
  check(1u << among.team);  // the others may have entered before it failed: that is none
  const auto meet = [timeout](const Context& direct) {
    return beeline::barrier(Thread{}, direct, Order::memory, timeout);
  };
  Status status;
  if (among.has_routes != 0 && spans_nodes()) {
    status = barrier_across_nodes(among, timeout);
  } else if (among.has_routes == 0) {
    status = meet(among);
  } else {
    Context direct = among;
    direct.set_routes(nullptr);  // its words lie in the control blocks of the node, which all of its ranks reach
    status = meet(direct);
  }
  if (status != Status::ok && status != Status::timeout) fail(status, among.team);
  return status;
}

void World::Implementation::begin_collective(const Context& among) {
  check(1u << among.team);
  if (among.sync->entered.value != among.sync->completed.value)
    throw Error(Status::invalid_argument,
                fmt::format("rank {}'s last barrier timed out: call it again until it returns ok", rank));
}

void World::Implementation::begin_collective(const char* call) {
  begin_collective(barrier_context);
  bootstrap->enter(call);
}

std::vector<std::vector<std::byte>> World::Implementation::exchange(const char* call, std::span<const std::byte> mine,
                                                                    std::int64_t wait_ns) {
  return meet_in(call, [&] { return bootstrap->allgather(mine, wait_ns); });
}

namespace {

/// An error's first line, without the words that announce further lines: other ranks list them in their own errors.
std::string first_line(const std::string& reason) {
  const std::size_t end = reason.find('\n');
  if (end == std::string::npos) return reason;
  const std::string line = reason.substr(0, end);
  return line.ends_with(':') ? line.substr(0, line.rfind(';')) : line;
}

}  // namespace

void World::abort(const std::string& reason) {
  implementation_->require_own_process();
  const std::string line = detail::without_rank(first_line(reason), rank());
  implementation_->note_end(rank(), line);
  implementation_->raise_with_cause(Status::peer_died, fmt::format("rank {} aborted: {}", rank(), line),
                                    implementation_->barrier_context);
  implementation_->bootstrap->abort(line);
}

void World::check_collective() { implementation_->begin_collective(implementation_->barrier_context); }
void World::check() { implementation_->check(implementation_->living_teams()); }
std::vector<RankHealth> World::health() const {
  implementation_->require_own_process();
  return implementation_->bootstrap->health();
}
std::vector<WaitRecord> World::failed_waits() const {
  implementation_->require_own_process();
  return implementation_->failed_waits();
}

void World::Implementation::require_own_process() const {
  if (!is_forked()) return;
  throw Error(Status::invalid_argument,
              fmt::format("process {} is a fork of process {}, which is rank {} of this world: a forked process cannot "
                          "use its parent's world, and makes one of its own after the fork if it needs one",
                          ::getpid(), process, rank),
              rank);
}

void World::Implementation::seal_in_child() {
  HostAreaHeader& mine = *host_header(rank);
  // The memory is the child's own (AddressRange): the abort words end every wait of the child alone.
  checks.is_forked = true;
  for (std::uint64_t& word : mine.control.abort) word = abort_word(static_cast<std::uint32_t>(rank));
}

void World::Implementation::zero(void* address, std::size_t bytes) {
  if (!device().is_gpu()) {
    std::memset(address, 0, bytes);
    return;
  }
  const std::unique_ptr<Event> event = copy_stream->make_event();
  copy_stream->fill(address, 0, bytes);
  copy_stream->record(*event);
  constexpr std::uint32_t whatever_fails = 0;
  await(
      "zeroing memory", config.deadline_ns, [&event] { return event->done(); }, whatever_fails);
}

}  // namespace beeline
