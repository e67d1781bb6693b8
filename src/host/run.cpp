// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

namespace {

/// The ranks of this process, while they run.
class LocalRanks {
 public:
  explicit LocalRanks(int count) : running_(count) {}

  /// Runs one rank; prints its error, and lets the others know.
  void run(const Config& config, std::unique_ptr<Bootstrap> bootstrap, const std::function<void(World&)>& body);
  /// Blocks until every rank has ended. Threads cannot be ended from outside: when a world has failed and a rank does
  /// not come back from it, the whole process ends.
  void await_end(std::int64_t deadline_ns);
  [[nodiscard]] bool all_well() const { return all_well_; }

 private:
  void report(int rank, const char* error);
  [[nodiscard]] int stuck_rank() const;

  std::mutex mutex_;
  std::condition_variable ended_;
  int running_;                 ///< guarded by mutex_, like the rest
  std::vector<World*> worlds_;  ///< those whose body runs
  bool all_well_ = true;
};

void LocalRanks::report(int rank, const char* error) {
  const std::lock_guard lock(mutex_);
  if (all_well_) std::fputs(fmt::format("beeline[{}] error: {}\n", rank, error).c_str(), stderr);
  all_well_ = false;
}

void LocalRanks::run(const Config& config, std::unique_ptr<Bootstrap> bootstrap,
                     const std::function<void(World&)>& body) {
  const int rank = bootstrap ? bootstrap->rank() : config.rank;
  std::unique_ptr<World> world;
  const auto fail = [&](const char* error) {
    report(rank, error);
    if (world) world->abort(error);
  };
  try {
    world = bootstrap ? World::create(config, std::move(bootstrap)) : World::create(config);
    {
      const std::lock_guard lock(mutex_);
      worlds_.push_back(world.get());
    }
    body(*world);
    world->leave();
  } catch (const std::exception& error) {
    fail(error.what());
  } catch (...) {
    fail("an exception that is no std::exception");
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase(worlds_, world.get());
  }
  world.reset();
  const std::lock_guard lock(mutex_);
  --running_;
  ended_.notify_all();
}

int LocalRanks::stuck_rank() const {
  for (World* world : worlds_)
    if (world->failed()) return world->rank();
  return -1;
}

void LocalRanks::await_end(std::int64_t deadline_ns) {
  using Clock = std::chrono::steady_clock;
  // Ranks that agree on who is left may need the deadline to do so; then their world has no failure any more.
  const auto patience = std::chrono::nanoseconds(deadline_ns) + std::chrono::seconds(5);
  auto well_at = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_ == 0; })) {
    const int stuck = stuck_rank();
    if (stuck < 0) well_at = Clock::now();
    if (Clock::now() - well_at < patience) continue;
    std::fputs(
        fmt::format("beeline error: rank {} does not return from a world that has failed: the process ends\n", stuck)
            .c_str(),
        stderr);
    std::fflush(nullptr);
    std::_Exit(1);
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
  if (!config.threads) {
    LocalRanks ranks(1);
    ranks.run(config, nullptr, body);
    return ranks.all_well() ? 0 : 1;
  }
  std::vector<std::unique_ptr<Bootstrap>> bootstraps;
  try {
    bootstraps = make_thread_bootstraps(config.size);
  } catch (const Error& error) {
    std::fputs(fmt::format("beeline error: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  LocalRanks ranks(config.size);
  std::vector<std::thread> threads;
  for (auto& bootstrap : bootstraps) {
    threads.emplace_back([&, mine = std::move(bootstrap)]() mutable {
      Config own = config;
      own.rank = mine->rank();
      ranks.run(own, std::move(mine), body);
    });
  }
  ranks.await_end(config.deadline_ns);
  for (std::thread& thread : threads) thread.join();
  return ranks.all_well() ? 0 : 1;
}

}  // namespace beeline
