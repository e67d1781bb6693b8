// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/triggers.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "beeline/core/call_fault.hpp"
#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "control/host_engine.hpp"
#include "control/host_triggers.hpp"
#include "control/waiting_streams.hpp"
#include "core/faulty_argument.hpp"
#include "host/carried_work.hpp"
#include "host/device_triggers.hpp"
#include "host/guarded_moves.hpp"
#include "host/world/engines.hpp"
#include "host/world/grids.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "host/world/streams.hpp"
#include "memory/gpu_pointers.hpp"

namespace beeline {

namespace {

const TriggerOptions& checked_options(const TriggerOptions& options) {
  require(options.tags > 0 && options.tags < no_chain && options.entries > 0 && options.queues > 0 &&
              options.streams > 0 && options.streams <= TriggerOptions::most_streams,
          Status::invalid_argument,
          fmt::format("triggers: {} tags, {} entries, {} queues, {} streams; at least one of each, and at most {} "
                      "streams",
                      options.tags, options.entries, options.queues, options.streams, TriggerOptions::most_streams));
  return options;
}

}  // namespace

/// Words by which operations of guarded streams are cancelled.
struct Triggers::Guards {
  SymmetricArray<GuardWords> words;
  SymmetricArray<std::uint64_t> verdicts;
};

Triggers::Triggers(Team& team, const TriggerOptions& options)
    : team_(team), life_(team.life()), channel_{{}, nullptr, checked_options(options).tags} {
  if (options.by == TriggeredBy::engine)
    be_done_by_engine(options);
  else if (options.by == TriggeredBy::device_engine)
    be_done_by_device_engine(options);
  else
    be_done_by_streams(options);
}

void Triggers::be_done_by_engine(const TriggerOptions& options) {
  queues_ = std::make_unique<CommandQueues>(team_, options.queues);
  channel_.queues = queues_->channel();
  const auto& sources = queues_->sources();
  auto table = std::make_unique<HostTriggers>(
      TriggerTable::Size{options.tags, options.entries, team_.host_context().deadline_ns}, options.queues,
      [&sources](std::uint32_t queue) { sources[queue]->wake(); },
      [&team = team_](const std::string& reason) { team.give_up(reason); });
  HostEngine& engine = world_part<Engines>(team_.world()).of_queues();
  for (std::uint32_t i = 0; i < options.queues; ++i) engine.serve_triggers(*sources[i], *table, i);
  back_end_ = std::move(table);
}

void Triggers::be_done_by_device_engine(const TriggerOptions& options) {
  queues_ = std::make_unique<CommandQueues>(team_, options.queues, CommandQueueOptions{.engine = EngineKind::device});
  channel_.queues = queues_->channel();
  DeviceEngine& engine = *queues_->device_engine_;
  auto table = std::make_unique<DeviceTriggers>(
      team_, engine, options.queues,
      TriggerTable::Size{options.tags, options.entries, team_.host_context().deadline_ns},
      [&team = team_](const std::string& reason) { team.give_up(reason); });
  engine.serve_triggers(*table);
  back_end_ = std::move(table);
}

/// A share is booked for the kernels that move, since a waiting grid that left no room for them would wait for ever.
void Triggers::be_done_by_streams(const TriggerOptions& options) {
  World& world = team_.world();
  counts_ = std::make_unique<Counts>(Counts{SymmetricArray<std::uint64_t>(team_, options.tags),
                                            SymmetricArray<std::uint64_t>(team_, options.streams + 1, Heap::pinned),
                                            team_.host_context()});
  counts_->waiting.deadline_ns = std::numeric_limits<std::uint64_t>::max();  // armed operations have the deadline
  channel_.counters = counts_->counters.data();
  WaitingStreamsClient client;
  client.counters = channel_.counters;
  client.completed = counts_->completed.data();
  client.tags = options.tags, client.streams = options.streams;
  client.deadline_ns = team_.host_context().deadline_ns;
  client.make_stream = [&world, waiting = &counts_->waiting] {
    return world_part<Streams>(world).make_waiting(*waiting);
  };
  client.address_of = [&ctx = team_.host_context()](std::uint32_t peer, std::uint64_t offset) {
    return ctx.range + peer * SlotLayout{ctx.slot_shift}.slot_bytes() + offset;
  };
  client.read = [&world](const std::uint64_t* counter) {
    if (!world.device().is_gpu()) return detail::load_acquired(*counter);
    std::uint64_t value = 0;
    world.copy(&value, counter, sizeof value);
    return value;
  };
  client.has_failed = [&team = team_] { return team.failed() || team.world().failed(); };
  client.end_team = [&team = team_] {
    if (!team.failed()) team.give_up("its triggers end with the world");
  };
  client.fail = [&team = team_](const std::string& reason) { team.give_up(reason); };
  const bool is_guarded = options.by == TriggeredBy::guarded_stream;
  if (is_guarded) guard(client);
  if (world.device().is_gpu() && (is_guarded || team_.context().has_routes != 0))
    world_part<Grids>(world).ledger().keep(
        counts_.get(), is_guarded ? room_of_guarded_moves(world) : room_of_carried_work(world, options.streams),
        [rank = world.rank()] { return fmt::format("rank {}'s triggers by streams", rank); });
  back_end_ = std::make_unique<WaitingStreams>(std::move(client));
}

void Triggers::guard(WaitingStreamsClient& client) {
  std::uint64_t* const released = client.completed + client.streams;
  client.released = released;
  guards_ = std::make_unique<Guards>(
      Guards{SymmetricArray<GuardWords>(team_, client.streams * WaitingStreams::most_armed, Heap::pinned),
             SymmetricArray<std::uint64_t>(team_, client.streams)});
  client.guards = guards_->words.data(), client.verdicts = guards_->verdicts.data();
  client.move_guarded = [&team = team_](Stream& stream, const StreamMove& first, const StreamMove& second,
                                        const MoveGuard& guard) {
    start_guarded_move(team, stream, first, second, guard);
  };
  client.carried_to = [&team = team_](const void* address) {
    const Routes& routes = world_part<Routes>(team.world());
    if (routes.needs_engine(address)) {
      const auto owner = static_cast<int>(team.host_context().owner_of(address));
      int member = 0;
      while (member + 1 < team.size() && team.world_rank(member) != owner) ++member;
      return static_cast<std::uint32_t>(member);
    }
    require(!team.world().device().is_gpu() || (routes.of_kernel(address).is_direct() &&
                                                gpu_memory::describe(address).kind != gpu_memory::PointerKind::host),
            Status::unreachable,
            "a GPU's kernels do not reach that memory, an engine does: arm it with TriggeredBy::engine");
    return no_peer;
  };
}

Triggers::~Triggers() {
  if (!life_->is_usable()) {
    static_cast<void>(queues_.release());
    static_cast<void>(back_end_.release());
    return;
  }
  try {
    if (!team_.world().failed() && !team_.failed()) {
      if (queues_ != nullptr) queues_->quiet();
      back_end_->close();
      const Status status = detail::await_engine(team_.host_context(), {}, [this] { return back_end_->is_idle(); });
      require(status == Status::ok, status, "a transfer that was triggered is not complete");
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("triggers end: {}", error.what()), team_.world().rank());
  }
  queues_.reset();  // from now on no engine uses the table
  back_end_.reset();
  if (counts_ != nullptr && team_.world().device().is_gpu())
    world_part<Grids>(team_.world()).ledger().forget(counts_.get());
}

ArmedOperation Triggers::arm(const TriggeredOperation& operation, const TriggerCondition& when) {
  TriggeredCommands what{.count = operation.count_,
                         .tag = checked(when.tag),
                         .threshold = when.threshold,
                         .then = when.then == no_chain ? no_chain : checked(when.then)};
  require(when.threshold > 0, Status::invalid_argument,
          "a threshold of 0: an operation starts after one trigger at least");
  require(when.deadline_ns >= 0, Status::invalid_argument, fmt::format("a deadline of {} ns", when.deadline_ns));
  what.deadline_ns = static_cast<std::uint64_t>(when.deadline_ns);
  for (std::uint32_t i = 0; i < operation.count_; ++i) what.commands[i] = command_of(operation.parts_[i]);
  return back_end_->arm(what);
}

bool Triggers::cancel(ArmedOperation operation) { return back_end_->cancel(operation); }

Status Triggers::wait(ArmedOperation operation, Timeout timeout) {
  const Status status =
      detail::await_engine(team_.host_context(), {true, timeout}, [&] { return back_end_->is_over(operation); });
  if (status == Status::timeout) return status;
  if (team_.failed() || team_.world().failed()) team_.world().check();
  if (status != Status::ok)
    throw Error(status, "wait for a triggered operation: " + back_end_->describe(operation), team_.world().rank());
  const std::vector<std::string> refused = refusals();
  require(refused.empty(), Status::invalid_argument, refused.empty() ? std::string() : refused.front());
  return status;
}

void Triggers::trigger(std::uint32_t tag, std::uint64_t count) {
  require(count > 0, Status::invalid_argument, "a trigger counts once at least");
  const char* const refused = back_end_->trigger(checked(tag), count);
  require(refused == nullptr, Status::unavailable, refused == nullptr ? "" : std::string("trigger: ") + refused);
}

std::uint64_t Triggers::count(std::uint32_t tag) const { return back_end_->count(checked(tag)); }

std::uint32_t Triggers::armed() const { return back_end_->armed(); }

std::vector<std::string> Triggers::refusals() const {
  return queues_ != nullptr ? queues_->refusals() : std::vector<std::string>{};
}

EngineStatistics Triggers::statistics() const {
  return queues_ != nullptr ? queues_->statistics() : EngineStatistics{};
}

std::uint32_t Triggers::checked(std::uint32_t tag) const {
  require(tag < channel_.tags, Status::invalid_argument, describe(CallFault::no_tag, channel_.tags, tag));
  return tag;
}

/// Builds the command of an operation. Throws the error for which a device operation with these arguments would be
/// refused.
Command Triggers::command_of(const TriggeredOperation::Part& part) const {
  const Context& ctx = team_.host_context();
  const std::string called = std::string(name(part.operation)) + " to arm: ";
  Command command{};
  command.verb = part.verb, command.width = part.width, command.is_signed = part.is_signed;
  command.local = reinterpret_cast<std::uintptr_t>(part.local);
  const bool is_word = part.width != 0;
  require(is_word || (part.bytes > 0 && part.local != nullptr), Status::invalid_argument,
          called + (part.bytes == 0 ? "of no bytes" : "a null address"));
  require(part.operation != Operation::atomic || is_atomic_without_answer(part.verb), Status::invalid_argument,
          called + "its verb is none that changes a word without an answer");
  if (!is_word) command.rows = 1, command.row_bytes = part.bytes;
  if (has_shape<VerbShape::between>(part.verb)) {
    require(part.remote != nullptr, Status::invalid_argument, called + "a null address");
    command.peer = ctx.own_world_rank;
    command.remote = reinterpret_cast<std::uintptr_t>(part.remote);
    return command;
  }
  const std::uint32_t peer =
      part.peer == TriggeredOperation::own_rank ? ctx.rank : static_cast<std::uint32_t>(part.peer);
  const detail::Reach reach{part.remote, part.bytes, is_word ? part.width : std::size_t{1}};
  if (!detail::is_sound(ctx, reach, peer)) {
    const detail::Finding found = detail::finding_in(ctx, reach, peer);
    const char* const argument = detail::faulty_argument(part.operation, found.fault);
    throw Error(Status::invalid_argument, called + argument + describe(found.fault, found.expected, found.observed),
                team_.world().rank());
  }
  const bool is_out_of_reach = ctx.kind_of(ctx.rank) == DeviceKind::host && ctx.kind_of(peer) == DeviceKind::gpu &&
                               !ctx.in_host_half(part.remote);
  require(!is_out_of_reach, Status::unreachable, called + "the engine of a host rank does not reach GPU memory");
  command.peer = ctx.world_rank(peer);
  command.remote = ctx.offset_in_slot(part.remote);
  return command;
}

}  // namespace beeline
