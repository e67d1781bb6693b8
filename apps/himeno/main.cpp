// SPDX-License-Identifier: Apache-2.0
/// @file
/// himeno: the Himeno benchmark with a choice of communication methods. Prints JSON lines from rank 0.

#include "program.hpp"

int main(int argc, char** argv) { return himeno::run_program(argc, argv, himeno::methods()); }
