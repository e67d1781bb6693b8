// SPDX-License-Identifier: Apache-2.0
// Collectives in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

constexpr WorldKind threads = WorldKind::threads, processes = WorldKind::processes;

std::vector<Case> cases_of(const WorldShape& shape) {
  return shape.crowd ? crowded_collective_cases() : collective_cases();
}

// Processes first: what runs all shapes in one process must fork before its threads use CUDA.
[[maybe_unused]] const bool registered = register_shapes({{processes, 2, 1, Devices::cpu, false},
                                                          {processes, 4, 2, Devices::cpu, false},
                                                          {processes, 2, 1, Devices::gpus, false},
                                                          {processes, 4, 1, Devices::gpus, false},
                                                          {processes, 4, 1, Devices::cpus_and_a_gpu, false},
                                                          {threads, 1, 1, Devices::cpu, false},
                                                          {threads, 2, 3, Devices::cpu, false},
                                                          {threads, 5, 1, Devices::cpu, false},
                                                          {threads, 9, 1, Devices::cpu, true},
                                                          {threads, 31, 1, Devices::cpu, true},
                                                          {threads, 64, 1, Devices::cpu, true},
                                                          {threads, 1, 1, Devices::gpus, false},
                                                          {threads, 3, 1, Devices::one_gpu, false},
                                                          {threads, 2, 1, Devices::gpus, false},
                                                          {threads, 4, 1, Devices::gpus, false},
                                                          {threads, 2, 1, Devices::cpus_and_a_gpu, false}},
                                                         cases_of);

}  // namespace

}  // namespace beeline_test
