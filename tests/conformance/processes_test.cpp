// SPDX-License-Identifier: Apache-2.0
// The suite with ranks that are processes. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

constexpr WorldKind processes = WorldKind::processes;

[[maybe_unused]] const bool registered = register_shapes({{processes, 2, 1, Devices::cpu, false},
                                                          {processes, 4, 3, Devices::cpu, false},
                                                          {processes, 8, 1, Devices::cpu, true},
                                                          {processes, 64, 1, Devices::cpu, true},
                                                          {processes, 2, 1, Devices::gpus, false},
                                                          {processes, 4, 1, Devices::gpus, false},
                                                          {processes, 2, 1, Devices::cpus_and_a_gpu, false},
                                                          {processes, 4, 1, Devices::cpus_and_a_gpu, false},
                                                          {processes, 4, 1, Devices::cpus_and_two_gpus, false},
                                                          {processes, 3, 1, Devices::cpu, false, false},
                                                          {processes, 2, 1, Devices::gpus, false, false},
                                                          {processes, 3, 1, Devices::cpu, false, true, true},
                                                          {processes, 2, 1, Devices::gpus, false, true, true}},
                                                         conformance_cases);

}  // namespace

}  // namespace beeline_test
