// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "core/exception_text.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

namespace {

/// An error that one rank has, or several.
struct RankError {
  std::string text;  ///< without the rank
  std::vector<int> ranks;
  std::string line;  ///< of the first rank, in full
};

/// The ranks of this process, while they run.
class LocalRanks {
 public:
  explicit LocalRanks(int count) : running_(static_cast<std::size_t>(count)), is_lone_(count == 1) {
    std::iota(running_.begin(), running_.end(), 0);
  }

  /// Runs one rank; prints its error, and lets the others know.
  void run(const Config& config, std::unique_ptr<Bootstrap> bootstrap, const std::function<void(World&)>& body);
  /// Blocks until every rank has ended. Threads cannot be ended from outside: when a world has failed and a rank does
  /// not come back from it, the whole process ends.
  void await_end(std::int64_t deadline_ns);
  /// Prints those that would be printed when all ranks have ended.
  void print_errors() {
    const std::lock_guard lock(mutex_);
    print_followers();
  }
  [[nodiscard]] bool all_well() const { return all_well_; }
  /// Those that have not ended.
  [[nodiscard]] std::vector<int> running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  /// Prints a rank's error.
  ///   follows  from the end of another rank: it is printed when all ranks have ended, without the waits that the
  ///            other's error lists
  void report(int rank, const char* error, bool follows);
  /// Prints what waits for an error that it follows from, equal errors once.
  void print_followers();
  [[nodiscard]] int stuck_rank() const;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<int> running_;    ///< ranks; guarded by mutex_, like the rest
  std::vector<World*> worlds_;  ///< those whose body runs
  bool all_well_ = true;
  const bool is_lone_;  ///< no other rank's error is to come first
  std::vector<RankError> followers_;
};

/// Ranks that are threads, while they run.
std::atomic<LocalRanks*> rank_threads{nullptr};
/// That runs on this thread; -1: none.
thread_local int rank_here = -1;

/// A rank that calls exit takes all ranks of its process with it: that is no success.
void end_with_all_ranks(int code, const std::string& call) {
  LocalRanks* const ranks = rank_threads.exchange(nullptr);
  if (ranks == nullptr) return;
  const std::string who = rank_here < 0 ? "a thread that is no rank" : fmt::format("rank {}", rank_here);
  std::fputs(fmt::format("beeline error: {} called {} while ranks {} of its process had not ended: ranks that are "
                         "threads end by returning from their function, or by an exception\n",
                         who, call, fmt::join(ranks->running(), ", "))
                 .c_str(),
             stderr);
  ranks->print_errors();
  std::fflush(nullptr);
  std::_Exit(code == 0 ? 1 : code);
}

void watch_for_exit() {
  static const bool watches = [] {
    ::on_exit([](int code, void*) { end_with_all_ranks(code, fmt::format("exit({})", code)); }, nullptr);
    std::at_quick_exit([] { end_with_all_ranks(0, "quick_exit"); });
    return true;
  }();
  static_cast<void>(watches);
}

void LocalRanks::report(int rank, const char* error, bool follows) {
  const std::lock_guard lock(mutex_);
  all_well_ = false;
  std::string all = error;
  if (follows && all.find(": because of rank ") != std::string::npos) all = all.substr(0, all.find('\n'));
  const std::string text = detail::without_rank(all, rank);
  std::string line =
      text == all ? fmt::format("beeline[{}] error: {}\n", rank, all) : fmt::format("beeline error: {}\n", all);
  if (!follows) {
    std::fputs(line.c_str(), stderr);
    return;
  }
  const auto same = std::ranges::find(followers_, text, &RankError::text);
  if (same != followers_.end())
    same->ranks.push_back(rank);
  else
    followers_.push_back({text, {rank}, std::move(line)});
  if (is_lone_) print_followers();
}

void LocalRanks::print_followers() {
  for (RankError& error : followers_) {
    std::ranges::sort(error.ranks);
    if (error.ranks.size() > 1)
      error.line = fmt::format("beeline error: ranks {}: {}\n", fmt::join(error.ranks, ", "), error.text);
    std::fputs(error.line.c_str(), stderr);
  }
  followers_.clear();
}

void LocalRanks::run(const Config& config, std::unique_ptr<Bootstrap> bootstrap,
                     const std::function<void(World&)>& body) {
  const int rank = bootstrap ? bootstrap->rank() : config.rank;
  std::unique_ptr<World> world;
  const auto fail = [&](const char* error, Status code = Status::internal) {
    report(rank, error, code == Status::aborted || code == Status::peer_died);
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
  } catch (const Error& error) {
    fail(error.what(), error.code());
  } catch (...) {
    fail(detail::current_exception_text().c_str());
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase(worlds_, world.get());
  }
  world.reset();
  const std::lock_guard lock(mutex_);
  std::erase(running_, rank);
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
  while (!ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_.empty(); })) {
    const int stuck = stuck_rank();
    if (stuck < 0) well_at = Clock::now();
    if (Clock::now() - well_at < patience) continue;
    print_followers();
    std::fputs(
        fmt::format("beeline error: rank {} does not return from a world that has failed: the process ends\n", stuck)
            .c_str(),
        stderr);
    std::fflush(nullptr);
    std::_Exit(1);
  }
  print_followers();
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
  watch_for_exit();
  rank_threads = &ranks;
  std::vector<std::thread> threads;
  for (auto& bootstrap : bootstraps) {
    threads.emplace_back([&, mine = std::move(bootstrap)]() mutable {
      Config own = config;
      own.rank = rank_here = mine->rank();
      ranks.run(own, std::move(mine), body);
    });
  }
  ranks.await_end(config.deadline_ns);
  rank_threads = nullptr;
  for (std::thread& thread : threads) thread.join();
  return ranks.all_well() ? 0 : 1;
}

}  // namespace beeline
