// SPDX-License-Identifier: Apache-2.0
// The suite with ranks that are threads of one process.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

class ThreadsConformance : public ::testing::TestWithParam<WorldShape> {};

TEST_P(ThreadsConformance, EveryCase) { run_suite(GetParam()); }

constexpr WorldKind threads = WorldKind::threads;

INSTANTIATE_TEST_SUITE_P(
    Worlds, ThreadsConformance,
    ::testing::Values(WorldShape{threads, 1, 3, Devices::cpu, false}, WorldShape{threads, 2, 3, Devices::cpu, false},
                      WorldShape{threads, 4, 1, Devices::cpu, false}, WorldShape{threads, 8, 1, Devices::cpu, true},
                      WorldShape{threads, 64, 1, Devices::cpu, true}, WorldShape{threads, 1, 1, Devices::gpus, false},
                      WorldShape{threads, 2, 1, Devices::one_gpu, false},
                      WorldShape{threads, 4, 1, Devices::gpus, false},
                      WorldShape{threads, 2, 1, Devices::cpus_and_a_gpu, false},
                      WorldShape{threads, 4, 2, Devices::cpus_and_a_gpu, false},
                      WorldShape{threads, 4, 1, Devices::cpus_and_two_gpus, false},
                      WorldShape{threads, 3, 1, Devices::cpu, false, false},
                      WorldShape{threads, 2, 1, Devices::gpus, false, false}),
    shape_name);

}  // namespace

}  // namespace beeline_test
