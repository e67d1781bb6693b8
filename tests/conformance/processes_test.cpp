// SPDX-License-Identifier: Apache-2.0
// The suite with ranks that are processes. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

class ProcessesConformance : public ::testing::TestWithParam<WorldShape> {};

TEST_P(ProcessesConformance, EveryCase) { run_suite(GetParam()); }

constexpr WorldKind processes = WorldKind::processes;

INSTANTIATE_TEST_SUITE_P(Worlds, ProcessesConformance,
                         ::testing::Values(WorldShape{processes, 2, 1, Devices::cpu, false},
                                           WorldShape{processes, 4, 3, Devices::cpu, false},
                                           WorldShape{processes, 8, 1, Devices::cpu, true},
                                           WorldShape{processes, 64, 1, Devices::cpu, true},
                                           WorldShape{processes, 2, 1, Devices::gpus, false},
                                           WorldShape{processes, 4, 1, Devices::gpus, false},
                                           WorldShape{processes, 2, 1, Devices::cpus_and_a_gpu, false},
                                           WorldShape{processes, 4, 1, Devices::cpus_and_a_gpu, false},
                                           WorldShape{processes, 4, 1, Devices::cpus_and_two_gpus, false},
                                           WorldShape{processes, 3, 1, Devices::cpu, false, false},
                                           WorldShape{processes, 2, 1, Devices::gpus, false, false}),
                         shape_name);

}  // namespace

}  // namespace beeline_test
