// SPDX-License-Identifier: Apache-2.0
// Messages in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/message_calls.hpp"
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

class MessagesConformance : public ::testing::TestWithParam<WorldShape> {};

TEST_P(MessagesConformance, EveryCase) { run_suite(GetParam(), message_cases()); }

TEST(MessagesInACrowd, EveryCase) {
  run_suite({WorldKind::threads, 64, 1, Devices::cpu, true}, crowded_message_cases());
}

constexpr WorldKind threads = WorldKind::threads, processes = WorldKind::processes;

INSTANTIATE_TEST_SUITE_P(
    Worlds, MessagesConformance,
    ::testing::Values(
        WorldShape{processes, 2, 1, Devices::cpu, false}, WorldShape{processes, 4, 2, Devices::cpu, false},
        WorldShape{processes, 2, 1, Devices::gpus, false}, WorldShape{processes, 4, 1, Devices::gpus, false},
        WorldShape{processes, 4, 1, Devices::cpus_and_a_gpu, false}, WorldShape{threads, 1, 1, Devices::cpu, false},
        WorldShape{threads, 2, 3, Devices::cpu, false}, WorldShape{threads, 5, 1, Devices::cpu, false},
        WorldShape{threads, 1, 1, Devices::gpus, false}, WorldShape{threads, 3, 1, Devices::one_gpu, false},
        WorldShape{threads, 2, 1, Devices::gpus, false}, WorldShape{threads, 4, 1, Devices::gpus, false},
        WorldShape{threads, 2, 1, Devices::cpus_and_a_gpu, false}),
    shape_name);

}  // namespace

}  // namespace beeline_test
