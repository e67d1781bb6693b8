// SPDX-License-Identifier: Apache-2.0
// Every litmus test in every kind of world: no instance shows an outcome that the memory model forbids. Beside each
// test run the program without its ordering, whose outcomes are counted, and one that shows the forbidden outcome in
// every instance, which proves that the test can fail.
#include "tests/litmus/litmus.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

namespace {

using beeline::Config;
using beeline::World;

constexpr std::uint64_t instances_on_cpus = 1'000'000, instances_on_gpus = 10'000'000, instances_of_proofs = 20'000;

enum class Devices { cpu, one_gpu, gpus };

struct LitmusWorld {
  WorldKind kind;
  Devices devices;
};

/// How often the forbidden outcome may occur.
enum class Verdict { never, counted, always };

struct Experiment {
  std::string name;
  Verdict verdict;
  std::function<Outcomes(World&, std::uint64_t)> run;
};

std::uint64_t instances_of(const World& world, Verdict verdict) {
  if (verdict == Verdict::always) return instances_of_proofs;
  return world.device().is_gpu() ? instances_on_gpus : instances_on_cpus;
}

void run_experiment(World& world, const Experiment& experiment) {
  const auto start = std::chrono::steady_clock::now();
  const Outcomes seen = experiment.run(world, instances_of(world, experiment.verdict));
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
  const std::string text = fmt::format("  {:5} ms  {}: rank {}: {} instances, {} overlapped, {} forbidden outcomes", ms,
                                       experiment.name, world.rank(), seen.instances, seen.overlapped, seen.forbidden);
  if (world.rank() == 0) std::fputs((text + "\n").c_str(), stdout);
  const std::uint64_t fewest = experiment.verdict == Verdict::always ? seen.instances : 0;
  const std::uint64_t most = experiment.verdict == Verdict::never ? 0 : seen.instances;
  if (seen.forbidden < fewest || seen.forbidden > most) throw CheckFailure(text);
}

class Litmus : public ::testing::TestWithParam<LitmusWorld> {
 protected:
  /// Why this machine cannot run the world; empty if it can.
  static std::string reason(int size) {
    if (GetParam().devices == Devices::cpu) return {};
    std::string why;
    const int gpus = gpus_here(&why);
    if (gpus == 0) return "no GPU: " + why;
    const int needed = GetParam().devices == Devices::one_gpu ? 1 : GetParam().kind == WorldKind::processes ? size : 2;
    return gpus < needed ? fmt::format("needs {} GPUs, {} here", needed, gpus) : "";
  }

  static void run(int size, const std::vector<Experiment>& experiments) {
    if (const std::string why = reason(size); !why.empty()) GTEST_SKIP() << why;
    Config config = test_config();
    if (GetParam().devices == Devices::cpu) config.device = "cpu";
    if (GetParam().devices == Devices::one_gpu) config.device = "cuda:0";
    expect_all_passed(run_ranks(
        GetParam().kind, size,
        [&](World& world) {
          for (const Experiment& experiment : experiments) {
            run_experiment(world, experiment);
            world.barrier();
          }
        },
        config, 110));
  }
};

Experiment passing(const std::string& name, Verdict verdict, Passing passing, GroupKind kind = GroupKind::thread) {
  return {"message passing, " + name, verdict,
          [=](World& world, std::uint64_t instances) { return pass_messages(world, passing, kind, instances); }};
}

TEST_P(Litmus, MessagePassing) {
  run(2, {passing("put_signal", Verdict::never, Passing::put_signal), passing("fence", Verdict::never, Passing::fence),
          passing("relaxed", Verdict::counted, Passing::relaxed),
          passing("nothing put", Verdict::always, Passing::withheld)});
}

TEST_P(Litmus, MessagePassingByBlocks) {
  run(2, {passing("put_signal", Verdict::never, Passing::put_signal, GroupKind::block),
          passing("fence", Verdict::never, Passing::fence, GroupKind::block),
          passing("quiet", Verdict::never, Passing::quiet, GroupKind::block),
          passing("relaxed", Verdict::counted, Passing::relaxed, GroupKind::block),
          passing("nothing put", Verdict::always, Passing::withheld, GroupKind::block)});
}

/// A GPU's kernel is slow to access host memory: it runs as many instances as CPUs.
TEST_P(Litmus, MessagePassingToACpuThread) {
  const auto through_host_memory = [](const std::string& name, Verdict verdict, Passing passing) {
    return Experiment{"message passing to a CPU thread, " + name, verdict, [=](World& world, std::uint64_t instances) {
                        return pass_messages_to_a_cpu(world, passing, std::min(instances, instances_on_cpus));
                      }};
  };
  run(2, {through_host_memory("put_signal", Verdict::never, Passing::put_signal),
          through_host_memory("fence", Verdict::never, Passing::fence),
          through_host_memory("nothing put", Verdict::always, Passing::withheld)});
}

TEST_P(Litmus, MessagePassingInAChain) {
  const auto chain = [](bool withheld) {
    return [=](World& world, std::uint64_t instances) { return pass_in_a_chain(world, withheld, instances); };
  };
  run(3, {{"chain of signals", Verdict::never, chain(false)},
          {"chain of signals, nothing put", Verdict::always, chain(true)}});
}

std::vector<Experiment> crossings(const std::string& name, Crossing crossing) {
  std::vector<Experiment> all;
  const auto add = [&](const std::string& with, Verdict verdict, Between between, Home home) {
    all.push_back(
        {fmt::format("{}, {}, words at the {}", name, with, home == Home::loader ? "loader" : "storer"), verdict,
         [=](World& world, std::uint64_t instances) { return cross(world, crossing, between, home, instances); }});
  };
  for (const Home home : {Home::loader, Home::storer}) {
    add("fence", Verdict::never, Between::fence, home);
    add("no fence", Verdict::counted, Between::nothing, home);
    add("reversed", Verdict::always, Between::reversed, home);
  }
  return all;
}

TEST_P(Litmus, StoreBuffering) { run(2, crossings("store buffering", Crossing::store_then_load)); }

TEST_P(Litmus, LoadBuffering) { run(2, crossings("load buffering", Crossing::load_then_store)); }

TEST_P(Litmus, Packets) {
  const auto packets = [](bool withheld) {
    return [=](World& world, std::uint64_t instances) { return move_packets(world, withheld, instances); };
  };
  run(2, {{"packets", Verdict::never, packets(false)}, {"packets of no message", Verdict::always, packets(true)}});
}

TEST_P(Litmus, Barrier) {
  const auto meeting = [](Meeting kind) {
    return [=](World& world, std::uint64_t instances) { return put_and_meet(world, kind, instances); };
  };
  run(3, {{"barrier", Verdict::never, meeting(Meeting::memory)},
          {"meeting of a collective", Verdict::never, meeting(Meeting::collective)},
          {"barrier, relaxed", Verdict::counted, meeting(Meeting::relaxed)},
          {"barrier, nothing put", Verdict::always, meeting(Meeting::withheld)}});
}

std::string world_name(const ::testing::TestParamInfo<LitmusWorld>& info) {
  const char* devices = info.param.devices == Devices::cpu    ? "cpu"
                        : info.param.devices == Devices::gpus ? "gpus"
                                                              : "one_gpu";
  return fmt::format("{}_{}", info.param.kind == WorldKind::threads ? "threads" : "processes", devices);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Litmus,
                         ::testing::Values(LitmusWorld{WorldKind::threads, Devices::cpu},
                                           LitmusWorld{WorldKind::processes, Devices::cpu},
                                           LitmusWorld{WorldKind::threads, Devices::one_gpu},
                                           LitmusWorld{WorldKind::threads, Devices::gpus},
                                           LitmusWorld{WorldKind::processes, Devices::gpus}),
                         world_name);

}  // namespace

}  // namespace beeline_test
