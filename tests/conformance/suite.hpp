// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The suite, run in shapes of worlds: kinds, sizes and devices.

#include <initializer_list>
#include <vector>

#include "tests/conformance/rank_test.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// Which devices the ranks have: CPUs, GPUs, all the first GPU; or both kinds, with one GPU or two.
enum class Devices { cpu, gpus, one_gpu, cpus_and_a_gpu, cpus_and_two_gpus };

/// A world that the cases run in.
struct WorldShape {
  WorldKind kind;
  int size;
  int host_threads = 1;
  Devices devices = Devices::cpu;
  bool crowd = false;           ///< many ranks on few cores: only the cases that suit them
  bool peer_access = true;      ///< false: copies are staged; only the cases that copy
  int nodes = 1;                ///< that this machine counts as; only the cases that suit
  const char* transports = "";  ///< between nodes, as Config::transports; empty: the default
  bool secure = false;          ///< connections between nodes are encrypted
  bool keyed = false;           ///< true: puts to and gets from other nodes go by memory keys; only the cases that do
  bool routed = false;  ///< true: engines carry what goes to other ranks, each in turn; only the cases that suit them
};

/// The main function of a suite: registers the cases that suit each shape with GoogleTest, each as the test
/// `SHAPE.CASE`, as in `threads_2_cpu.put_rounds`, and runs them. The cases of a shape share a world, which is made
/// anew after one that fails. A shape is skipped with the reason where the machine cannot run it.
int run_suite(int argc, char** argv, const std::vector<WorldShape>& shapes,
              std::vector<Case> (*suitable)(const WorldShape&));

/// The cases of these groups; throws std::out_of_range where one has none.
[[nodiscard]] std::vector<Case> cases_of(std::initializer_list<CaseGroup> groups);

/// The worlds that collectives and messages run in, with crowds of so many host ranks.
[[nodiscard]] std::vector<WorldShape> channel_shapes(std::initializer_list<int> crowds);

/// The cases that suit a shape, but for collectives and messages.
[[nodiscard]] std::vector<Case> conformance_cases(const WorldShape& shape);

}  // namespace beeline_test
