// SPDX-License-Identifier: Apache-2.0
#include "tests/support/standing_ranks.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include "beeline/core/error.hpp"

namespace beeline_test {

namespace {

using beeline::World;

/// The job that ends a rank.
constexpr int leave = -1;
/// `run_ranks` sets no limit: each job has its own.
constexpr int no_limit_s = 1'000'000;
/// Time for ranks to end after the job `leave`, or to be killed.
constexpr std::chrono::seconds end_limit{60};

/// The first character of a rank's messages.
enum Said : char { in_world = 'w', did_job = 'j', ended_all = 'e' };

void say(int line, Said what, const std::string& text = {}) {
  const std::string message = static_cast<char>(what) + text.substr(0, 4000);
  while (send(line, message.data(), message.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

/// Whether there is something to read before `timeout`.
bool readable(int line, std::chrono::milliseconds timeout) {
  pollfd polled{line, POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(std::max<long>(timeout.count(), 0))) > 0;
}

int next_job(const World& world, int line) {
  while (!readable(line, std::chrono::milliseconds(50)))
    if (world.failed()) throw std::runtime_error("another rank failed when this one had done its job");
  int number = leave;
  while (recv(line, &number, sizeof number, 0) < 0 && errno == EINTR) {
  }
  return number;
}

}  // namespace

StandingRanks::StandingRanks(WorldKind kind, int size, const beeline::Config& config, Job job)
    : job_(std::move(job)), lines_(static_cast<std::size_t>(size)) {
  for (Line& line : lines_) {
    int ends[2];
    beeline::require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, beeline::Status::internal,
                     "socketpair failed");
    line.owner = beeline::FileDescriptor(ends[0]);
    line.rank = beeline::FileDescriptor(ends[1]);
  }
  runner_ = std::thread([this, kind, config] { host(kind, config); });
}

void StandingRanks::host(WorldKind kind, const beeline::Config& config) {
  const int size = static_cast<int>(lines_.size());
  try {
    outcomes_ = run_ranks(
        kind, size, [this](World& world) { serve(world); }, config, no_limit_s);
  } catch (const std::exception& error) {
    outcomes_.assign(lines_.size(), {error.what(), 0});
  }
  for (const Line& line : lines_) say(line.rank.get(), ended_all);
}

void StandingRanks::serve(World& world) {
  const int line = lines_[static_cast<std::size_t>(world.rank())].rank.get();
  say(line, in_world, std::to_string(getpid()));
  for (;;) {
    const int number = next_job(world, line);
    if (number == leave) return;
    const std::string skipped = job_(world, number);
    world.barrier();  // if the job failed on any rank, this throws
    say(line, did_job, skipped);
  }
}

void StandingRanks::tell_all(int number) {
  for (const Line& line : lines_)
    while (send(line.owner.get(), &number, sizeof number, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

std::string StandingRanks::hear(Line& line, Clock::time_point limit) {
  for (;;) {
    if (!readable(line.owner.get(), std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now()))) return {};
    std::array<char, 4096> buffer;
    const ssize_t bytes = recv(line.owner.get(), buffer.data(), buffer.size(), 0);
    if (bytes <= 0) continue;
    const std::string message(buffer.data(), static_cast<std::size_t>(bytes));
    if (message.front() != in_world) return message;
    line.process = std::stoi(message.substr(1));
  }
}

void StandingRanks::join() {
  if (runner_.joinable()) runner_.join();
}

/// Ranks that are threads, or that have no world yet, end with the whole test.
void StandingRanks::kill_all() {
  for (const Line& line : lines_) {
    if (line.process == 0 || line.process == getpid()) {
      std::fflush(nullptr);
      std::fputs("watchdog: ranks that do not end; the test ends with them\n", stderr);
      std::_Exit(1);
    }
    ::kill(line.process, SIGKILL);
  }
}

StandingRanks::Result StandingRanks::run(int number, int limit_s) {
  const auto limit = Clock::now() + std::chrono::seconds(limit_s);
  Result result{std::vector<RankOutcome>(lines_.size()), {}};
  std::vector<std::string> heard;
  tell_all(number);
  for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
    heard.push_back(hear(lines_[rank], limit));
    if (heard.back().empty()) {
      std::fputs(fmt::format("watchdog: after {} s rank {} had not done its job\n", limit_s, rank).c_str(), stderr);
      kill_all();
      heard.back() = ended_all;
    }
    if (heard.back().front() == ended_all) {
      join();
      result.outcomes = outcomes_;
      if (result.outcomes[rank].passed()) result.outcomes[rank].failure = "ended without doing its job";
      return result;
    }
  }
  result.skipped = heard[0].substr(1);
  for (std::size_t rank = 0; rank < heard.size(); ++rank)
    if (heard[rank] != heard[0])
      result.outcomes[rank].failure = fmt::format("skipped by some ranks only: here \"{}\", on rank 0 \"{}\"",
                                                  heard[rank].substr(1), result.skipped);
  return result;
}

std::vector<RankOutcome> StandingRanks::end() {
  if (ended()) return outcomes_;
  tell_all(leave);
  const auto limit = Clock::now() + end_limit;
  std::string message;
  do message = hear(lines_[0], limit);
  while (!message.empty() && message.front() != ended_all);
  if (message.empty()) kill_all();
  join();
  return outcomes_;
}

}  // namespace beeline_test
