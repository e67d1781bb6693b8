// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/random.hpp"
#include "tests/support/watchdog.hpp"

namespace beeline_test {

namespace {

using beeline::Bootstrap;
using beeline::Config;
using beeline::World;
using Clock = std::chrono::steady_clock;

/// Runs one rank; an exception that it throws aborts the world, and its text is returned.
std::string run_rank(const std::function<std::unique_ptr<World>()>& create, const std::function<void(World&)>& body) {
  std::unique_ptr<World> world;
  try {
    world = create();
    body(*world);
    return {};
  } catch (const std::exception& error) {
    if (world) world->abort(error.what());
    return error.what();
  }
}

/// Ranks that are threads together hold the descriptors of all ranks for each rank while a world is created: 64 x 64.
void allow_open_files() {
  constexpr rlim_t wanted = 16384;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<RankOutcome> run_threads(int size, const std::function<void(World&)>& body, const Config& config,
                                     int limit_s) {
  allow_open_files();
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::atomic<bool>> ended(static_cast<std::size_t>(size));
  const Watchdog watchdog(std::chrono::seconds(limit_s), [&] {
    std::vector<int> running;
    for (int rank = 0; rank < size; ++rank)
      if (!ended[static_cast<std::size_t>(rank)]) running.push_back(rank);
    return fmt::format("watchdog: after {} s these ranks had not ended: {}\n", limit_s, fmt::join(running, ", "));
  });
  std::vector<std::thread> threads;
  for (auto& bootstrap : beeline::make_thread_bootstraps(size)) {
    threads.emplace_back([&, mine = std::move(bootstrap)]() mutable {
      Config own = config;
      own.size = size;
      own.rank = mine->rank();
      const auto index = static_cast<std::size_t>(own.rank);
      outcomes[index].failure = run_rank([&] { return World::create(own, std::move(mine)); }, body);
      ended[index] = true;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void wait_for(std::vector<ChildProcess>& children, int limit_s, std::vector<RankOutcome>& outcomes) {
  const auto end = Clock::now() + std::chrono::seconds(limit_s);
  bool late = false;
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      if (children[rank].ended()) continue;
      polled.push_back({children[rank].descriptor(), POLLIN, 0});
      ranks.push_back(rank);
    }
    if (polled.empty()) return;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const int ready = poll(polled.data(), polled.size(), late ? -1 : static_cast<int>(std::max<long>(left, 0)));
    if (ready == 0) {
      late = true;
      for (const std::size_t rank : ranks) {
        outcomes[rank].failure = fmt::format("watchdog: not ended after {} s. ", limit_s);
        children[rank].kill();
      }
    }
    for (std::size_t i = 0; i < polled.size(); ++i)
      if (polled[i].revents != 0) static_cast<void>(children[ranks[i]].read_more());
  }
}

}  // namespace

Config test_config() {
  Config config = Config::from_environment();
  if (std::getenv("BEELINE_DEADLINE_S") == nullptr) config.deadline_ns = 20'000'000'000;
  if (std::getenv("BEELINE_HEAP_BYTES") == nullptr) config.heap_bytes = std::size_t{128} << 20;
  return config;
}

std::vector<RankOutcome> run_processes(int size, const std::function<void(const Config&)>& body, const Config& config,
                                       int limit_s) {
  std::vector<ChildProcess> children;
  const std::string token = beeline::make_token();
  static_cast<void>(seed());
  for (int rank = 0; rank < size; ++rank) {
    children.emplace_back([&, rank](const std::string& address) {
      Config own = config;
      own.rank = rank;
      own.size = size;
      own.rendezvous = address;
      own.token = token;
      body(own);
      return std::string();
    });
  }
  // Started after the fork: children with the server's sockets would keep its connections open.
  const beeline::RendezvousServer server({size, token, "127.0.0.1", config.secure});
  for (ChildProcess& child : children) child.tell(server.address());
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(size));
  wait_for(children, limit_s, outcomes);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    outcomes[rank].failure += children[rank].answer();
    outcomes[rank].signal = children[rank].signal();
    if (children[rank].exit_code() != 0 && outcomes[rank].failure.empty())
      outcomes[rank].failure = fmt::format("exit code {}", children[rank].exit_code());
  }
  return outcomes;
}

std::vector<RankOutcome> run_ranks(WorldKind kind, int size, const std::function<void(World&)>& body,
                                   const Config& config, int limit_s) {
  static_cast<void>(seed());
  if (kind == WorldKind::threads) return run_threads(size, body, config, limit_s);
  return run_processes(
      size,
      [&](const Config& own) {
        const std::string failure = run_rank([&] { return World::create(own); }, body);
        if (!failure.empty()) throw std::runtime_error(failure);
      },
      config, limit_s);
}

void expect_all_passed(const std::vector<RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].passed()) continue;
    ADD_FAILURE() << "rank " << rank << " of " << outcomes.size()
                  << (outcomes[rank].signal == 0 ? "" : fmt::format(", killed by signal {}", outcomes[rank].signal))
                  << ": " << outcomes[rank].failure << "\nBEELINE_TEST_SEED=" << seed();
  }
}

int gpus_here(std::string* why_none) {
  struct Found {
    int count = 0;
    std::string why;
  };
  static const Found found = []() -> Found {
    const char* device = std::getenv("BEELINE_DEVICE");
    if (device != nullptr && std::string_view(device) == "cpu") return {0, "BEELINE_DEVICE=cpu"};
    if (!beeline::built_with_cuda()) return {0, "this build has no CUDA"};
    ChildProcess child([](const std::string&) {
      std::string why;
      const std::size_t count = beeline::visible_gpus(&why).size();
      return fmt::format("{} {}", count, why);
    });
    child.tell("");
    while (!child.read_more()) {
    }
    const std::string& answer = child.answer();
    const std::size_t space = std::min(answer.find(' '), answer.size());
    return {std::atoi(answer.c_str()), answer.substr(std::min(space + 1, answer.size()))};
  }();
  if (why_none != nullptr) *why_none = found.why;
  return found.count;
}

beeline::Config test_config(const std::string& device) {
  beeline::Config config = test_config();
  config.device = device;
  return config;
}

void expect_passed_on_cpus(int size, const std::function<void(beeline::World&)>& body) {
  expect_all_passed(run_ranks(WorldKind::threads, size, body, test_config("cpu")));
}

std::string missing_gpus(int needed) {
  std::string why;
  const int gpus = gpus_here(&why);
  if (gpus == 0) return "no GPU: " + why;
  return gpus < needed ? fmt::format("needs {} GPUs, {} here", needed, gpus) : "";
}

std::string missing_gpus(const std::string& device, int ranks) {
  return device == "cpu" ? "" : missing_gpus(device == "auto" ? ranks : 1);
}

}  // namespace beeline_test
