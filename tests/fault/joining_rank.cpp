// SPDX-License-Identifier: Apache-2.0
// joining-rank [worlds | kill RANK | wait RANK]: joins as the environment says, and prints the members' process ids.
// `worlds` creates several worlds, also two at once; `kill` kills RANK, `wait` lets it miss the barrier.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"

namespace {

using beeline::World;

/// The process ids of all ranks, as each rank has received them.
std::string meet(World& world, int number) {
  std::string text = "world " + std::to_string(number) + " rank " + std::to_string(world.rank()) + " of " +
                     std::to_string(world.size()) + " met";
  const pid_t mine = getpid();
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(&mine, 1)))) {
    pid_t theirs = 0;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&theirs));
    text += " " + std::to_string(theirs);
  }
  world.barrier();
  return text + "\n";
}

void meet_often(World& first) {
  std::string text = meet(first, 0);
  for (int number = 1; number < 4; ++number) text += meet(*World::create(), number);
  const std::unique_ptr<World> second = World::create();
  text += meet(*second, 4) + meet(first, 5);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string how = argument_count > 1 ? arguments[1] : "";
  const int chosen = argument_count > 2 ? std::atoi(arguments[2]) : -1;
  return beeline::run([&](World& world) {
    if (how == "worlds") return meet_often(world);
    std::fputs(meet(world, 0).c_str(), stdout);
    if (how == "kill" && world.rank() == chosen) kill(getpid(), SIGKILL);
    if (how == "wait" && world.rank() == chosen) pause();
    world.barrier();
  });
}
