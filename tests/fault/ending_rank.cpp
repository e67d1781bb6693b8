// SPDX-License-Identifier: Apache-2.0
/// @file
/// ending-rank RANK HOW: all ranks meet; then RANK stops, throws, or calls exit or _exit, and the others wait for it in
/// a barrier.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "beeline/host/run.hpp"

namespace {

void end(const std::string& how) {
  if (how == "stop") std::raise(SIGSTOP);
  if (how == "exit 0") std::exit(0);
  if (how == "exit 3") std::exit(3);
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "_exit 0") _exit(0);
  if (how == "quick_exit 0") std::quick_exit(0);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  const int ending = std::atoi(arguments[1]);
  const std::string how = arguments[2];
  const int code = beeline::run([&](beeline::World& world) {
    world.barrier();
    if (world.rank() == ending) end(how);
    world.barrier();
  });
  if (how == "exit afterwards") std::exit(code);
  return code;
}
