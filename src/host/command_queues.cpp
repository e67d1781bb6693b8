// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/command_queues.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/device/put_get.hpp"
#include "control/engine_threads.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

std::uint32_t checked(const Team& team, std::uint32_t queues) {
  team.world().implementation().require_one_node(team, "a command queue");
  require(queues > 0, Status::invalid_argument, "command queues: 0 of them; at least one");
  return queues;
}

}  // namespace

CommandQueues::CommandQueues(Team& team, std::uint32_t queues, const CommandQueueOptions& options)
    : team_(team), rings_(team, checked(team, queues), Heap::pinned),
      tickets_(team, queues), channel_{rings_.data(), tickets_.data(), queues} {
  if (options.engine_threads != 0)
    own_engine_ = team.world().implementation().make_engine_threads(options.engine_threads, options.is_timed);
  for (std::uint32_t i = 0; i < queues; ++i) engine().add(rings_.data()[i]);
}

EngineThreads& CommandQueues::engine() const {
  return own_engine_ != nullptr ? *own_engine_ : team_.world().implementation().engine_of_queues();
}

CommandQueues::~CommandQueues() {
  try {
    if (!team_.world().failed() && !team_.failed()) quiet();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("command queues end: {}", error.what()), team_.world().rank());
  }
  for (std::uint32_t i = 0; i < channel_.queues; ++i) engine().remove(rings_.data()[i]);
}

void CommandQueues::quiet() const {
  for (std::uint32_t i = 0; i < channel_.queues; ++i) {
    CommandTickets tickets{};
    team_.world().copy(&tickets, &channel_.tickets[i], offsetof(CommandTickets, freed));
    const detail::EngineWait wait{};
    const Status status = detail::await_engine(team_.host_context(), wait, [&] {
      return detail::load_acquired(channel_.rings[i].completed.value) >= tickets.next;
    });
    require(status == Status::ok, status,
            fmt::format("the engine has done {} of the {} commands of queue {}",
                        detail::load_acquired(channel_.rings[i].completed.value), tickets.next, i));
  }
}

std::vector<std::string> CommandQueues::refusals() const {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < channel_.queues; ++i)
    if (std::string text = engine().refusal(channel_.rings[i]); !text.empty()) all.push_back(std::move(text));
  return all;
}

EngineStatistics CommandQueues::statistics() const { return engine().statistics(); }

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
