// SPDX-License-Identifier: Apache-2.0
/// @file
/// himeno: the Himeno benchmark with a choice of communication methods. Prints JSON lines from rank 0.

#include "program.hpp"

int main(int argc, char** argv) {
  std::vector<himeno::MethodInfo> all = himeno::methods();
  for (himeno::MethodInfo& info : himeno::launch_methods()) all.push_back(std::move(info));
  return himeno::run_program(argc, argv, all);
}
