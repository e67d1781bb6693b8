// SPDX-License-Identifier: Apache-2.0
#include "host/host_grid.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/host_workers.hpp"

namespace beeline::detail {

void run_blocks(const HostGrid& grid, const HostBlock& block, unsigned first, unsigned last) {
  const unsigned team_size = grid.team_size, threads = (last - first) * team_size;
  Context context = grid.context;
  const bool adapts = context.polling.policy() == WaitPolicy::automatic;
  // A block may have more threads than there are cores, whatever the number of ranks.
  const Polling polling = adapts ? Polling(64) : context.polling;
  if (threads == 1) {
    HostTeamState alone(1, context.deadline_ns, polling);
    return block(HostTeam(&alone, 0), first, grid.state, context);
  }
  if (threads > grid.cores) context.polling = polling;
  std::vector<std::unique_ptr<HostTeamState>> teams;
  for (unsigned rank = first; rank < last; ++rank)
    teams.push_back(std::make_unique<HostTeamState>(team_size, context.deadline_ns, polling));
  std::mutex mutex;
  std::exception_ptr failure;
  // Threads that spin do not yield their core.
  const unsigned at_once = polling.policy() == WaitPolicy::spin ? threads : grid.cores;
  grid.workers.run(threads, at_once, [&](unsigned index) {
    HostTeamState& team = *teams[index / team_size];
    try {
      block(HostTeam(&team, index % team_size), first + index / team_size, grid.state, context);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      team.broken = true;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace beeline::detail
