// SPDX-License-Identifier: Apache-2.0
#include "common/core_share.hpp"

#include <sched.h>
#include <unistd.h>

#include "common/memory_budget.hpp"

namespace apps {

namespace {

/// The cores that this process could use before it was bound to one; none if it is not bound.
cpu_set_t all_cores = {};

/// Whether this process may use the same cores as the process that started it. Otherwise its launcher has chosen its
/// cores already, and this process does not know which cores the launcher has chosen for the other ranks.
bool has_cores_of_parent(const cpu_set_t& own) {
  cpu_set_t parents;
  return ::sched_getaffinity(::getppid(), sizeof parents, &parents) == 0 && CPU_EQUAL(&own, &parents);
}

/// Whether all ranks are known to run on this machine: their launcher says so, or its server has a local address.
bool are_on_one_machine(const beeline::Config& config) {
  return config.launcher.one_host && (config.rendezvous.empty() || config.rendezvous.starts_with("127."));
}

}  // namespace

int stay_on_a_core(const beeline::Config& config) {
  cpu_set_t allowed;
  if (config.threads || config.host_threads > 1 || config.split_nodes > 1 || !are_on_one_machine(config) ||
      ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !has_cores_of_parent(allowed))
    return 0;
  const int cores = CPU_COUNT(&allowed);
  if (config.size < cores || !machine_for(config.device).gpus.empty()) return 0;
  int left = config.rank % cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(core, &mine);
    if (::sched_setaffinity(0, sizeof mine, &mine) != 0) return 0;
    all_cores = allowed;
    return cores;
  }
  return 0;
}

void leave_core() {
  if (CPU_COUNT(&all_cores) > 0) static_cast<void>(::sched_setaffinity(0, sizeof all_cores, &all_cores));
}

}  // namespace apps
