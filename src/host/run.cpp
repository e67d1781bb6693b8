// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "core/exception_text.hpp"
#include "core/fork.hpp"
#include "core/thread.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

namespace {

/// An error of one rank, or the same error of several.
struct RankError {
  std::string text;  ///< without the rank
  std::vector<int> ranks;
  std::string line;  ///< the first rank's full error
};

/// How long a rank may take to return from a failed world. The agreement on the survivors may take the deadline.
std::chrono::nanoseconds end_limit_of(const Config& config) {
  return std::chrono::nanoseconds(config.deadline_ns) + std::chrono::seconds(5);
}

[[noreturn]] void end_process(const std::string& error) {
  std::fputs(fmt::format("beeline error: {}: the process ends\n", error).c_str(), stderr);
  std::fflush(nullptr);
  std::_Exit(1);
}

/// Watches the destruction of a failed world, which waits for the rank's streams. If a kernel on a stream never
/// returns, only the end of the process ends this wait.
class EndWatch {
 public:
  ///   before_end  called before the process ends
  EndWatch(int rank, std::chrono::nanoseconds limit, std::function<void()> before_end)
      : thread_(detail::start_thread_for(
            "the watch over the end of a failed world", [this, rank, limit, before_end = std::move(before_end)] {
              std::unique_lock lock(mutex_);
              if (changed_.wait_for(lock, limit, [this] { return is_over_; })) return;
              before_end();
              end_process(fmt::format("rank {}: work on its streams does not end although its world has failed", rank));
            })) {}
  ~EndWatch() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// The ranks of this process, while they run.
class LocalRanks {
 public:
  explicit LocalRanks(int count) : running_(static_cast<std::size_t>(count)), is_lone_(count == 1) {
    std::iota(running_.begin(), running_.end(), 0);
  }

  /// Runs one rank; prints its error, and reports it to the other ranks.
  void run(const Config& config, std::unique_ptr<Bootstrap> bootstrap, const std::function<void(World&)>& body);
  /// Blocks until every rank has ended. A thread cannot be ended from outside: if a world has failed and a rank does
  /// not return from it, the whole process ends.
  void await_end(std::chrono::nanoseconds limit);
  /// Prints now the errors that are kept until all ranks have ended.
  void print_errors() {
    const std::lock_guard lock(mutex_);
    print_followers();
  }
  [[nodiscard]] bool all_well() const { return all_well_; }
  /// Whether this process was forked while the ranks ran; then the ranks are the parent's.
  [[nodiscard]] bool is_forked() const { return fork_depth_ != detail::fork_depth(); }
  /// The ranks that have not ended.
  [[nodiscard]] std::vector<int> running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  /// Prints a rank's error.
  ///   follows  the error is a consequence of another rank's end: it is printed when all ranks have ended, without the
  ///            waits that the other rank's error lists
  void report(int rank, const char* error, bool follows);
  /// Ends a process that a rank's function has forked and that has reached the end of the function.
  ///   error  text of the exception of the function; nullptr: it returned
  void end_child(int rank, const char* error);
  /// Prints the kept errors that follow from others, equal errors once.
  void print_followers();
  [[nodiscard]] int stuck_rank() const;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<int> running_;    ///< ranks; guarded by mutex_, as are the members below
  std::vector<World*> worlds_;  ///< worlds whose body runs
  bool all_well_ = true;
  const std::uint32_t fork_depth_ = detail::fork_depth();
  const bool is_lone_;  ///< the only rank: its errors are printed at once
  std::vector<RankError> followers_;
};

/// The ranks that run as threads; nullptr: none.
std::atomic<LocalRanks*> rank_threads{nullptr};
/// The rank that runs on this thread; -1: none.
thread_local int rank_here = -1;

/// Whether a rank that runs as a thread is ending the process.
std::atomic<bool> is_exiting{false};

/// Ends the process with a failure if a rank calls exit, since this ends all ranks of the process. Returns if no rank
/// runs.
void end_with_all_ranks(int code, const std::string& call) {
  LocalRanks* const ranks = rank_threads;
  if (ranks == nullptr || ranks->is_forked()) return;
  while (is_exiting.exchange(true)) ::pause();  // another rank ends the process
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

/// Installs exit handlers. If several threads exit at the same time, each handler is called by one of them only, so
/// there is one for each rank.
void watch_for_exit() {
  static const bool watches = [] {
    for (std::uint32_t rank = 0; rank < max_ranks; ++rank) {
      ::on_exit([](int code, void*) { end_with_all_ranks(code, fmt::format("exit({})", code)); }, nullptr);
      std::at_quick_exit([] { end_with_all_ranks(0, "quick_exit"); });
    }
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

void LocalRanks::end_child(int rank, const char* error) {
  all_well_ = error == nullptr;
  if (error != nullptr) std::fputs(fmt::format("beeline error: a fork of rank {}: {}\n", rank, error).c_str(), stderr);
  // If the rank is a thread, its caller is not in this process.
  if (rank_here >= 0) std::exit(all_well_ ? 0 : 1);
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
    if (is_forked()) return end_child(rank, error);
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
    if (is_forked()) return end_child(rank, nullptr);
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
  {
    std::optional<EndWatch> watch;
    try {
      if (world && world->failed() && !is_forked())
        watch.emplace(rank, end_limit_of(config), [this] { print_errors(); });
    } catch (const Error& error) {  // then the end of the world is not watched
      report(rank, error.what(), false);
    }
    world.reset();
  }
  const std::lock_guard lock(mutex_);
  std::erase(running_, rank);
  ended_.notify_all();
}

int LocalRanks::stuck_rank() const {
  for (World* world : worlds_)
    if (world->failed()) return world->rank();
  return -1;
}

void LocalRanks::await_end(std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  auto well_at = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_.empty(); })) {
    const int stuck = stuck_rank();
    if (stuck < 0) well_at = Clock::now();
    if (Clock::now() - well_at < limit) continue;
    print_followers();
    end_process(fmt::format("rank {} does not return from a world that has failed", stuck));
  }
  print_followers();
}

/// Prints the error of a program whose ranks do not start.
int exit_status_of(const Error& error) {
  std::fputs(fmt::format("beeline error: {}\n", error.what()).c_str(), stderr);
  return 1;
}

}  // namespace

int run(const std::function<void(World&)>& body, Version headers) {
  try {
    return run(Config::from_environment(), body, headers);
  } catch (const Error& error) {
    return exit_status_of(error);
  }
}

int run(const Config& config, const std::function<void(World&)>& body, Version headers) {
  try {
    detail::require_same_version("run", headers, detail::world_headers);
  } catch (const Error& error) {
    return exit_status_of(error);
  }
  if (!config.threads) {
    LocalRanks ranks(1);
    ranks.run(config, nullptr, body);
    return ranks.all_well() ? 0 : 1;
  }
  std::vector<std::unique_ptr<Bootstrap>> bootstraps;
  try {
    bootstraps = make_thread_bootstraps(config.size);
  } catch (const Error& error) {
    return exit_status_of(error);
  }
  LocalRanks ranks(config.size);
  watch_for_exit();
  std::promise<bool> begins;  // false if not all threads start: a part of the ranks would wait for the rest
  std::vector<std::thread> threads;
  const auto run_rank = [&, may_begin = begins.get_future().share()](std::unique_ptr<Bootstrap>& mine) {
    if (!may_begin.get()) return;
    Config own = config;
    own.rank = rank_here = mine->rank();
    ranks.run(own, std::move(mine), body);
  };
  try {
    for (auto& bootstrap : bootstraps)
      threads.push_back(detail::start_thread_for(fmt::format("rank {} of {}", threads.size(), config.size),
                                                 [run_rank, &bootstrap] { run_rank(bootstrap); }));
  } catch (const Error& error) {
    begins.set_value(false);
    for (std::thread& thread : threads) thread.join();
    return exit_status_of(error);
  }
  rank_threads = &ranks;
  begins.set_value(true);
  ranks.await_end(end_limit_of(config));
  rank_threads = nullptr;
  for (std::thread& thread : threads) thread.join();
  return ranks.all_well() ? 0 : 1;
}

}  // namespace beeline
