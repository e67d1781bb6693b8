// SPDX-License-Identifier: Apache-2.0
// The suite with ranks that are processes. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

int main(int argc, char** argv) {
  using namespace beeline_test;
  constexpr WorldKind processes = WorldKind::processes;
  return run_suite(argc, argv,
                   {{processes, 2, 1, Devices::cpu, false},
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
                    {.kind = processes, .size = 3, .routed = true},
                    {.kind = processes, .size = 2, .devices = Devices::gpus, .routed = true},
                    {.kind = processes, .size = 2, .devices = Devices::gpus, .nodes = 2},
                    {.kind = processes, .size = 4, .devices = Devices::cpus_and_two_gpus, .nodes = 2},
                    {.kind = processes, .size = 2, .nodes = 2},
                    {.kind = processes, .size = 4, .nodes = 2, .transports = "sockets", .secure = true},
                    {.kind = processes, .size = 3, .nodes = 3, .keyed = true},
                    {.kind = processes, .size = 3, .peer_access = false, .nodes = 3}},
                   conformance_cases);
}
