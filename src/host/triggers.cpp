// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/triggers.hpp"

#include <fmt/format.h>

#include "beeline/core/call_fault.hpp"
#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/device/put_get.hpp"
#include "control/engine_threads.hpp"
#include "control/trigger_table.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

const TriggerOptions& checked_options(const TriggerOptions& options) {
  require(options.tags > 0 && options.tags < no_tag && options.entries > 0 && options.queues > 0,
          Status::invalid_argument,
          fmt::format("triggers: {} tags, {} entries, {} queues; at least one of each", options.tags, options.entries,
                      options.queues));
  return options;
}

}  // namespace

Triggers::Triggers(Team& team, const TriggerOptions& options)
    : team_(team),
      queues_(std::make_unique<CommandQueues>(team, checked_options(options).queues)), channel_{queues_->channel(),
                                                                                                options.tags} {
  std::vector<CommandRing*> rings;
  for (std::uint32_t i = 0; i < options.queues; ++i) rings.push_back(channel_.queues.queue(i).ring);
  table_ =
      std::make_unique<TriggerTable>(TriggerTable::Size{options.tags, options.entries, team.host_context().deadline_ns},
                                     rings, [&team](const std::string& reason) { team.give_up(reason); });
  EngineThreads& engine = team.world().implementation().engine_of_queues();
  for (std::uint32_t i = 0; i < options.queues; ++i) engine.serve_triggers(*rings[i], *table_, i);
}

Triggers::~Triggers() {
  try {
    if (!team_.world().failed() && !team_.failed()) {
      queues_->quiet();
      table_->cancel_all();
      const Status status = detail::await_engine(team_.host_context(), {}, [this] { return table_->is_idle(); });
      require(status == Status::ok, status, "what has fired is not over");
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("triggers end: {}", error.what()), team_.world().rank());
  }
  queues_.reset();  // from now on nobody uses the table
}

ArmedOperation Triggers::arm(const TriggeredOperation& operation, const TriggerCondition& when) {
  TriggeredCommands what{.count = operation.count_,
                         .tag = checked(when.tag),
                         .threshold = when.threshold,
                         .then = when.then == no_tag ? no_tag : checked(when.then)};
  require(when.threshold > 0, Status::invalid_argument,

          "a threshold of 0: an operation starts after one trigger at least");
  require(when.deadline_ns >= 0, Status::invalid_argument, fmt::format("a deadline of {} ns", when.deadline_ns));
  what.deadline_ns = static_cast<std::uint64_t>(when.deadline_ns);
  for (std::uint32_t i = 0; i < operation.count_; ++i) what.commands[i] = command_of(operation.parts_[i]);
  return table_->arm(what);
}

bool Triggers::cancel(ArmedOperation operation) { return table_->cancel(operation); }

Status Triggers::wait(ArmedOperation operation, Timeout timeout) {
  const Status status =
      detail::await_engine(team_.host_context(), {true, timeout}, [&] { return table_->is_over(operation); });
  if (status == Status::timeout) return status;
  if (team_.failed() || team_.world().failed()) team_.world().check();
  require(status == Status::ok, status, "a triggered operation is not over");
  const std::vector<std::string> refused = refusals();
  require(refused.empty(), Status::invalid_argument, refused.empty() ? std::string() : refused.front());
  return status;
}

void Triggers::trigger(std::uint32_t tag, std::uint64_t count) {
  require(count > 0, Status::invalid_argument, "a trigger counts once at least");
  static_cast<void>(table_->trigger(checked(tag), count));
}

std::uint64_t Triggers::count(std::uint32_t tag) const { return table_->count(checked(tag)); }

std::uint32_t Triggers::armed() const { return table_->armed(); }

std::uint32_t Triggers::checked(std::uint32_t tag) const {
  require(tag < channel_.tags, Status::invalid_argument, describe(CallFault::no_tag, channel_.tags, tag));
  return tag;
}

/// Throws what a device operation with these arguments would be refused for.
Command Triggers::command_of(const TriggeredOperation::Part& part) const {
  const Context& ctx = team_.host_context();
  const std::string called = std::string(name(part.operation)) + " to arm: ";
  Command command{};
  command.verb = part.verb, command.width = part.width, command.is_signed = part.is_signed;
  command.local = reinterpret_cast<std::uintptr_t>(part.local);
  const bool is_word = part.width != 0;
  require(is_word || (part.bytes > 0 && part.local != nullptr), Status::invalid_argument,
          called + (part.bytes == 0 ? "of no bytes" : "a null address"));
  require(part.operation != Operation::atomic || (part.verb >= Verb::add && part.verb <= Verb::exchange),
          Status::invalid_argument, called + "its verb is none that changes a word without an answer");
  if (!is_word) command.rows = 1, command.row_bytes = part.bytes;
  if (part.verb == Verb::copy) {
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
    throw Error(Status::invalid_argument, called + describe(found.fault, found.expected, found.observed),
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
