// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs test bodies as the ranks of a world: threads of this process, or child processes.

#include <functional>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/host/world.hpp"

namespace beeline_test {

enum class WorldKind { threads, processes };

/// How one rank ended.
struct RankOutcome {
  std::string failure;  ///< the body's exception as text; empty when it returned
  int signal = 0;       ///< the signal that killed its process; 0: none
  [[nodiscard]] bool passed() const { return failure.empty() && signal == 0; }
};

/// The environment's configuration with limits that suit tests: a deadline of 20 s, small heaps.
[[nodiscard]] beeline::Config test_config();
/// As above, with ranks on `device`.
[[nodiscard]] beeline::Config test_config(const std::string& device);

/// Runs `body` once for each of `size` ranks, each with a world that it creates. A rank that throws aborts the world.
/// Ranks that have not ended after `limit_s` are killed (threads: with the whole test).
/// Processes are forked, so nothing in this process may have used CUDA before.
[[nodiscard]] std::vector<RankOutcome> run_ranks(WorldKind kind, int size,
                                                 const std::function<void(beeline::World&)>& body,
                                                 const beeline::Config& config = test_config(), int limit_s = 120);

/// Runs `body` as `size` ranks on CPUs, threads of this process, all of which must pass.
void expect_passed_on_cpus(int size, const std::function<void(beeline::World&)>& body);

/// As `run_ranks` with processes, but the body creates the world itself, from a configuration with rank, size,
/// rendezvous and token.
[[nodiscard]] std::vector<RankOutcome> run_processes(int size, const std::function<void(const beeline::Config&)>& body,
                                                     const beeline::Config& config = test_config(), int limit_s = 120);

/// Fails the current GoogleTest test for every rank that did not pass, with the seed.
void expect_all_passed(const std::vector<RankOutcome>& outcomes);

/// GPUs that ranks of this machine can have; 0 with a reason in `why_none`. A child process counts them, so that this
/// process can still fork. 0 if BEELINE_DEVICE=cpu.
[[nodiscard]] int gpus_here(std::string* why_none = nullptr);

/// Why the machine lacks `needed` GPUs; empty if it has them.
[[nodiscard]] std::string missing_gpus(int needed);
/// Why it lacks the GPUs of `ranks` ranks on `device`: `cpu` needs none, `auto` one for each, any other one for all.
[[nodiscard]] std::string missing_gpus(const std::string& device, int ranks);

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

}  // namespace beeline_test
