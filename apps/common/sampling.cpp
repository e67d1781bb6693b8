// SPDX-License-Identifier: Apache-2.0
#include "common/sampling.hpp"

#include <sys/resource.h>

#include <chrono>

namespace apps {

namespace {

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Whether this rank reads the CPU time of its process: ranks that are threads share one process, which rank 0 counts.
bool counts_cpu(const beeline::World& world) { return !world.config().threads || world.rank() == 0; }

Sample combine(beeline::World& world, Sample mine) {
  if (!counts_cpu(world)) mine.cpu_seconds = 0;
  Sample all{0, 0};
  for (const Sample& theirs : from_all(world, mine)) {
    all.seconds = std::max(all.seconds, theirs.seconds);
    all.cpu_seconds += theirs.cpu_seconds;
  }
  return all;
}

}  // namespace

Sample timed_run(const std::function<void()>& work) {
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), process_cpu_seconds() - cpu};
}

Sample timed_run(beeline::World& world, const std::function<void()>& work) {
  world.barrier();
  const Sample mine = timed_run(work);
  world.barrier();
  return combine(world, mine);
}

Sample median(std::vector<Sample> all) {
  std::sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
  return all[all.size() / 2];
}

}  // namespace apps
