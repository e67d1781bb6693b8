// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/run.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

namespace {

/// Runs one rank; prints its error, and lets the others know.
bool run_rank(const Config& config, std::unique_ptr<Bootstrap> bootstrap, const std::function<void(World&)>& body,
              std::atomic<bool>& reported) {
  const int rank = bootstrap ? bootstrap->rank() : config.rank;
  std::unique_ptr<World> world;
  try {
    world = bootstrap ? World::create(config, std::move(bootstrap)) : World::create(config);
    body(*world);
    world.reset();
    return true;
  } catch (const std::exception& error) {
    if (!reported.exchange(true))
      std::fputs(fmt::format("beeline[{}] error: {}\n", rank, error.what()).c_str(), stderr);
    if (world) world->abort(error.what());
    return false;
  }
}

}  // namespace

int run(const std::function<void(World&)>& body) {
  try {
    return run(Config::from_environment(), body);
  } catch (const Error& error) {
    std::fputs(fmt::format("beeline error: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}

int run(const Config& config, const std::function<void(World&)>& body) {
  std::atomic<bool> reported{false};
  if (!config.threads) return run_rank(config, nullptr, body, reported) ? 0 : 1;
  std::vector<std::unique_ptr<Bootstrap>> bootstraps;
  try {
    bootstraps = make_thread_bootstraps(config.size);
  } catch (const Error& error) {
    std::fputs(fmt::format("beeline error: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  std::atomic<bool> all_well{true};
  std::vector<std::thread> threads;
  for (auto& bootstrap : bootstraps) {
    threads.emplace_back([&, mine = std::move(bootstrap)]() mutable {
      Config own = config;
      own.rank = mine->rank();
      if (!run_rank(own, std::move(mine), body, reported)) all_well = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all_well ? 0 : 1;
}

}  // namespace beeline
