// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/command_queues.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/host/world.hpp"
#include "control/host_engine.hpp"
#include "host/device_engine.hpp"
#include "host/world/engines.hpp"
#include "host/world/part.hpp"

namespace beeline {

namespace {

Heap heap_of(EngineKind engine) { return engine == EngineKind::host ? Heap::pinned : Heap::symmetric; }

std::uint32_t checked(std::uint32_t queues, const CommandQueueOptions& options) {
  require(queues > 0, Status::invalid_argument, "command queues: 0 of them; at least one");
  require(options.engine == EngineKind::host || (options.engine_threads == 0 && !options.is_timed),
          Status::invalid_argument, "command queues that a device engine serves have no threads of the host to time");
  return queues;
}

}  // namespace

CommandQueues::CommandQueues(Team& team, std::uint32_t queues, const CommandQueueOptions& options)
    : team_(team), life_(team.life()), rings_(team, checked(queues, options), heap_of(options.engine)),
      tickets_(team, queues), channel_{rings_.data(), tickets_.data(), queues} {
  if (options.engine == EngineKind::device) {
    device_engine_ = std::make_unique<DeviceEngine>(team, rings_.data(), queues);
    channel_.wanted = device_engine_->wanted();
    return;
  }
  if (options.engine_threads != 0)
    own_engine_ = world_part<Engines>(team.world()).make_host_engine(options.engine_threads, options.is_timed);
  for (std::uint32_t i = 0; i < queues; ++i) {
    sources_.push_back(std::make_unique<CommandReader>(rings_.data()[i]));
    engine().add(*sources_.back(), &tickets_.data()[i].completed_mirror);
  }
}

HostEngine& CommandQueues::engine() const {
  return own_engine_ != nullptr ? *own_engine_ : world_part<Engines>(team_.world()).of_queues();
}

CommandQueues::~CommandQueues() {
  if (!life_->is_usable()) {
    static_cast<void>(own_engine_.release());
    for (auto& source : sources_) static_cast<void>(source.release());  // engine threads may still use them
    static_cast<void>(device_engine_.release());
    return;
  }
  try {
    if (!team_.world().failed() && !team_.failed()) quiet();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("command queues end: {}", error.what()), team_.world().rank());
  }
  for (const auto& source : sources_) engine().remove(*source);
}

std::uint64_t CommandQueues::completed(std::uint32_t queue) const {
  return device_engine_ != nullptr ? device_engine_->completed(queue)
                                   : DoneCount{detail::load_acquired(channel_.rings[queue].completed.value)}.commands();
}

void CommandQueues::quiet() const {
  for (std::uint32_t i = 0; i < channel_.queues; ++i) {
    CommandTickets tickets{};
    team_.world().copy(&tickets, &channel_.tickets[i], offsetof(CommandTickets, freed));
    const detail::EngineWait wait{};
    const Status status =
        detail::await_engine(team_.host_context(), wait, [&] { return completed(i) >= tickets.next; });
    require(status == Status::ok, status,
            fmt::format("the engine has done {} of the {} commands of queue {}", completed(i), tickets.next, i));
  }
}

std::vector<std::string> CommandQueues::refusals() const {
  if (device_engine_ != nullptr) return device_engine_->refusals();
  std::vector<std::string> all;
  for (const auto& source : sources_)
    if (std::string text = engine().refusals().of(source.get()); !text.empty()) all.push_back(std::move(text));
  return all;
}

EngineStatistics CommandQueues::statistics() const {
  return device_engine_ != nullptr ? device_engine_->statistics() : engine().statistics();
}

std::uint64_t CommandQueues::full_posts() const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < channel_.queues; ++i) {
    CommandTickets tickets{};
    team_.world().copy(&tickets, &channel_.tickets[i], offsetof(CommandTickets, freed));
    sum += tickets.waits;
  }
  return sum;
}

}  // namespace beeline
