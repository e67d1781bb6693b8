// SPDX-License-Identifier: Apache-2.0
/// @file
/// himeno-gaspi: the Himeno benchmark with planes that GASPI's C functions send. Prints JSON lines from rank 0.

#include "gaspi_hybrid.hpp"
#include "program.hpp"

int main(int argc, char** argv) { return himeno::run_program(argc, argv, {himeno::gaspi_hybrid()}); }
