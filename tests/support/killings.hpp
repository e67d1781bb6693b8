// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counts the ranks that a test program has killed, and measures how soon the others knew and how soon they continued:
/// its last lines print both, for each kind of device.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <new>

#include "tests/support/check.hpp"

namespace beeline_test {

class Killings : public ::testing::Environment {
 public:
  static constexpr double soon_s = 5;  ///< the deadline is 20 s

  /// Ends the victim. The time until the system closes its connections is part of the others' wait.
  [[noreturn]] static void end_this_process() {
    times_->killed_ns = now_ns();
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  /// A survivor has received the error that names the victim.
  static void noticed() {
    noticed_ns_ = now_ns();
    if (times_->killed_ns == 0) return;  // the victim is alive, but unreachable
    const std::int64_t after_ns = noticed_ns_ - times_->killed_ns;
    raise(times_->longest_ns, after_ns);
    BEELINE_CHECK(static_cast<double>(after_ns) / 1e9 < soon_s);
  }
  /// Called when a survivor begins to agree with the others on the remaining ranks.
  static void agrees() {
    agrees_ns_ = now_ns();
    raise(times_->longest_cleaning_ns, agrees_ns_ - noticed_ns_);
  }
  /// Called when it has agreed with them. Returns the seconds that this took.
  static double went_on() {
    const std::int64_t took_ns = now_ns() - agrees_ns_;
    raise(times_->longest_agreement_ns, took_ns);
    return static_cast<double>(took_ns) / 1e9;
  }
  /// Called when all ranks of a world with one killing have ended.
  static void count(bool on_gpu) {
    Tally& tally = on_gpu ? on_gpus_ : on_hosts_;
    tally.killed += times_->killed_ns.exchange(0) != 0 ? 1 : 0;
    tally.longest_ns = std::max(tally.longest_ns, times_->longest_ns.exchange(0));
  }
  void TearDown() override {
    std::printf("ranks killed: %d on CPUs, the others knew within %.3f s; %d on GPUs, within %.3f s\n",
                on_hosts_.killed, static_cast<double>(on_hosts_.longest_ns) / 1e9, on_gpus_.killed,
                static_cast<double>(on_gpus_.longest_ns) / 1e9);
    if (times_->longest_agreement_ns != 0)
      std::printf("those left began to agree within %.3f s of their error, and had agreed within %.3f s\n",
                  static_cast<double>(times_->longest_cleaning_ns) / 1e9,
                  static_cast<double>(times_->longest_agreement_ns) / 1e9);
  }

 private:
  /// Shared by the ranks' processes with the process that forked them.
  struct Times {
    std::atomic<std::int64_t> killed_ns{0}, longest_ns{0}, longest_cleaning_ns{0}, longest_agreement_ns{0};
  };
  struct Tally {
    int killed;
    std::int64_t longest_ns;
  };
  static void raise(std::atomic<std::int64_t>& longest, std::int64_t ns) {
    std::int64_t known = longest;
    while (known < ns && !longest.compare_exchange_weak(known, ns)) {
    }
  }
  static std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  static Times* share() {
    void* const memory = mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return new (memory) Times;
  }

  static inline Times* const times_ = share();
  static inline Tally on_hosts_{}, on_gpus_{};
  static inline std::int64_t noticed_ns_ = 0, agrees_ns_ = 0;
};

/// GoogleTest owns it, and runs it after the last test.
[[maybe_unused]] inline ::testing::Environment* const killings = ::testing::AddGlobalTestEnvironment(new Killings);

}  // namespace beeline_test
