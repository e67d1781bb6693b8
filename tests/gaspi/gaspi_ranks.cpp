// SPDX-License-Identifier: Apache-2.0
#include "tests/gaspi/gaspi_ranks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>

namespace beeline_test {

namespace {

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

/// What `beeline run` would tell this process, which joins the world by gaspi_proc_init.
void set_environment(const GaspiRanks& how, const beeline::Config& config) {
  set("BEELINE_RANK", std::to_string(config.rank));
  set("BEELINE_SIZE", std::to_string(config.size));
  set("BEELINE_RENDEZVOUS", config.rendezvous);
  set("BEELINE_TOKEN", config.token);
  set("BEELINE_DEVICE", "cpu");
  set("BEELINE_DEADLINE_S", std::to_string(how.deadline_s));
  set("BEELINE_HEAP_BYTES", std::to_string(std::size_t{64} << 20));
  if (how.nodes < 2) return;
  set("BEELINE_SPLIT_NODES", std::to_string(how.nodes));
  set("BEELINE_TRANSPORTS", how.transports);
}

/// Standard error goes to a file in memory while this object lives.
class StandardError {
 public:
  StandardError() : file_(memfd_create("standard error", 0)), before_(dup(STDERR_FILENO)) {
    BEELINE_CHECK(file_ >= 0 && before_ >= 0 && dup2(file_, STDERR_FILENO) >= 0);
  }
  ~StandardError() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0)), '\0');
    BEELINE_CHECK_EQ(static_cast<ssize_t>(text.size()), pread(file_, text.data(), text.size(), 0));
    return text;
  }

 private:
  int file_, before_;
};

}  // namespace

void die() {
  for (;;) ::kill(::getpid(), SIGKILL);
}

std::vector<RankOutcome> run_processes_for_gaspi(const GaspiRanks& how, const std::function<void(int rank)>& body) {
  return run_processes(
      how.ranks,
      [&](const beeline::Config& config) {
        set_environment(how, config);
        body(config.rank);
      },
      test_config("cpu"), 60);
}

void expect_gaspi(const GaspiRanks& how, const std::function<void(int rank)>& body) {
  expect_all_passed(run_processes_for_gaspi(how, [&](int rank) {
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    body(rank);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

void expect_gaspi_without(int victim, const GaspiRanks& how, const std::function<void(int rank)>& body) {
  expect_others_passed(static_cast<std::size_t>(victim), run_processes_for_gaspi(how, [&](int rank) {
                         GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
                         body(rank);
                         if (rank == victim) throw CheckFailure("the victim lives on");
                         GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
                       }));
}

std::string logged_by(const std::function<void()>& body) {
  const StandardError error;
  body();
  return error.text();
}

gaspi_return_t repeat(const std::function<gaspi_return_t(gaspi_timeout_t)>& call, gaspi_timeout_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (;;) {
    const gaspi_return_t result = call(timeout_ms);
    if (result != GASPI_TIMEOUT) return result;
    if (Clock::now() > end) throw CheckFailure("a call still returns GASPI_TIMEOUT after 20 s");
    if (timeout_ms == GASPI_TEST) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

namespace {

std::atomic<int>* share_count() {
  using Count = std::atomic<int>;
  void* const memory = mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BEELINE_CHECK(memory != MAP_FAILED);
  return new (memory) Count(0);
}

}  // namespace

Latecomer::Latecomer(int others) : timeouts_(share_count()), others_(others) {}
Latecomer::~Latecomer() { munmap(timeouts_, sizeof *timeouts_); }

void Latecomer::make(bool is_late, const std::function<gaspi_return_t(gaspi_timeout_t)>& call,
                     gaspi_timeout_t timeout_ms) {
  ++calls_;
  if (is_late) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (*timeouts_ < calls_ * others_) {
      if (std::chrono::steady_clock::now() > end) throw CheckFailure("the others' calls have not timed out after 20 s");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else {
    GASPI_EXPECT(GASPI_TIMEOUT, call(timeout_ms));
    ++*timeouts_;
  }
  GASPI_OK(repeat(call, timeout_ms));
}

gaspi_notification_t take_notification(gaspi_segment_id_t segment, gaspi_notification_id_t id) {
  gaspi_notification_id_t found = 0;
  gaspi_notification_t value = 0;
  GASPI_OK(gaspi_notify_waitsome(segment, id, 1, &found, GASPI_BLOCK));
  BEELINE_CHECK_EQ(id, found);
  GASPI_OK(gaspi_notify_reset(segment, id, &value));
  return value;
}

void expect_refused(gaspi_return_t expected, const std::string& reason, const char* text, const char* file, int line,
                    const std::function<gaspi_return_t()>& call) {
  std::optional<gaspi_return_t> observed;
  const std::string log = logged_by([&] { observed = call(); });
  check_equal(static_cast<int>(expected), static_cast<int>(*observed), join(text, " (logged: ", log, ")"), file, line);
  check_contains(log, reason, file, line);
  check_equal(1, static_cast<int>(std::count(log.begin(), log.end(), '\n')), join("lines of \"", log, '"'), file, line);
}

}  // namespace beeline_test
