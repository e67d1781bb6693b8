// SPDX-License-Identifier: Apache-2.0
// Collectives in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

class CollectivesConformance : public ::testing::TestWithParam<WorldShape> {};

TEST_P(CollectivesConformance, EveryCase) { run_suite(GetParam(), collective_cases()); }

TEST(CollectivesOfACrowd, EveryCase) {
  for (const int ranks : {9, 31, 64})
    run_suite({WorldKind::threads, ranks, 1, Devices::cpu, true}, crowded_collective_cases());
}

constexpr WorldKind threads = WorldKind::threads, processes = WorldKind::processes;

INSTANTIATE_TEST_SUITE_P(
    Worlds, CollectivesConformance,
    ::testing::Values(WorldShape{threads, 1, 1, Devices::cpu, false}, WorldShape{threads, 2, 3, Devices::cpu, false},
                      WorldShape{threads, 5, 1, Devices::cpu, false}, WorldShape{processes, 2, 1, Devices::cpu, false},
                      WorldShape{processes, 4, 2, Devices::cpu, false}, WorldShape{threads, 1, 1, Devices::gpus, false},
                      WorldShape{threads, 3, 1, Devices::one_gpu, false},
                      WorldShape{threads, 2, 1, Devices::gpus, false}, WorldShape{threads, 4, 1, Devices::gpus, false},
                      WorldShape{processes, 2, 1, Devices::gpus, false},
                      WorldShape{processes, 4, 1, Devices::gpus, false},
                      WorldShape{threads, 2, 1, Devices::cpus_and_a_gpu, false},
                      WorldShape{processes, 4, 1, Devices::cpus_and_a_gpu, false}),
    shape_name);

}  // namespace

}  // namespace beeline_test
