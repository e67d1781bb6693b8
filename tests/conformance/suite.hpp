// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The suite, run in worlds of several shapes: kinds, sizes and devices.

#include <initializer_list>
#include <vector>

#include "tests/conformance/rank_test.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// The devices of the ranks: CPUs; GPUs; the first GPU for all; or both kinds, with one GPU or two.
enum class Devices { cpu, gpus, one_gpu, cpus_and_a_gpu, cpus_and_two_gpus };

/// A world in which the cases run.
struct WorldShape {
  WorldKind kind;
  int size;
  int host_threads = 1;
  Devices devices = Devices::cpu;
  bool crowd = false;           ///< many ranks on few cores: only the cases that suit them
  bool peer_access = true;      ///< false: copies are staged; only the cases that copy
  int nodes = 1;                ///< nodes that this machine acts as; only the cases that suit
  const char* transports = "";  ///< between nodes, as Config::transports; empty: the default
  bool secure = false;          ///< connections between nodes are encrypted
  bool keyed = false;           ///< true: puts to and gets from other nodes go by memory keys; only the cases that do
  bool routed = false;        ///< true: each engine in turn carries transfers to other ranks; only the cases that suit
  bool same_threads = false;  ///< other shapes have the same threads: ThreadSanitizer would see nothing new
};

/// The main function of a suite: registers the cases that suit each shape with GoogleTest, each as the test
/// `SHAPE.CASE`, such as `threads_2_cpu.put_rounds`, and runs them. The cases of a shape share a world, which is
/// created again after a case fails. A shape that the machine cannot run is skipped with the reason.
int run_suite(int argc, char** argv, const std::vector<WorldShape>& shapes,
              std::vector<Case> (*suitable)(const WorldShape&));

/// The cases of these groups; throws std::out_of_range if a group has none.
[[nodiscard]] std::vector<Case> cases_of(std::initializer_list<CaseGroup> groups);

/// The worlds in which collectives and messages run, with crowds of these numbers of host ranks.
[[nodiscard]] std::vector<WorldShape> channel_shapes(std::initializer_list<int> crowds);

/// The cases that suit a shape, except those of collectives and messages.
[[nodiscard]] std::vector<Case> conformance_cases(const WorldShape& shape);

}  // namespace beeline_test
