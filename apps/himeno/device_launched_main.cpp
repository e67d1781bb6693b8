// SPDX-License-Identifier: Apache-2.0
/// @file
/// himeno-device-launched: the Himeno benchmark with kernels that a kernel launches. Prints JSON lines from rank 0.

#include "device_launched.hpp"
#include "program.hpp"

int main(int argc, char** argv) { return himeno::run_program(argc, argv, {himeno::device_launched()}); }
