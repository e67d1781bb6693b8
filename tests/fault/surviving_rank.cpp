// SPDX-License-Identifier: Apache-2.0
/// @file
/// surviving-rank RANK HOW: RANK is killed or hangs while all ranks repeat barriers; the others continue and report it.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "beeline/host/run.hpp"
#include "beeline/host/team.hpp"

namespace {

void fail(const std::string& how) {
  if (how == "kill") ::kill(::getpid(), SIGKILL);
  if (how == "hang")
    for (;;) ::pause();
  if (how == "throw") throw std::runtime_error("thrown on purpose");
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  const int victim = std::atoi(arguments[1]);
  const std::string how = arguments[2];
  return beeline::run([&](beeline::World& world) {
    try {
      world.barrier();  // some may still be in it when the victim has left
      if (world.rank() == victim) fail(how);
      world.barrier();
    } catch (const beeline::Error& error) {
      beeline::Team& team = world.survivors();
      world.barrier();
      const beeline::RankHealth health = world.health()[static_cast<std::size_t>(victim)];
      std::printf("went on as rank %d of %d; rank %d has %s: %s\n", team.rank(), team.size(), victim,
                  beeline::name(health.state), health.reason.c_str());
    }
  });
}
