// SPDX-License-Identifier: Apache-2.0
/// @file
/// ending-rank RANK HOW: all ranks meet; then RANK stops, throws, or calls exit or _exit, and the others wait for it in
/// a barrier. With `fork` it forks: the child does as the parent, which waits for its end. With `keep` all ranks keep
/// objects that outlive the world.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "beeline/host/messages.hpp"
#include "beeline/host/run.hpp"

namespace {

std::unique_ptr<beeline::SymmetricArray<int>> kept;  // destroyed after main
std::unique_ptr<beeline::Messages> kept_messages;

/// Returns in both processes, in the parent after the child has ended with status 1.
void fork_and_wait() {
  const pid_t child = ::fork();
  if (child == 0) return;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 1) std::exit(99);
  std::puts("the child has ended");
}

void end(const std::string& how) {
  if (how == "stop") std::raise(SIGSTOP);
  if (how == "exit 0") std::exit(0);
  if (how == "exit 3") std::exit(3);
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "_exit 0") _exit(0);
  if (how == "quick_exit 0") std::quick_exit(0);
  if (how == "fork") fork_and_wait();
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
    if (how != "keep") return;
    kept = std::make_unique<beeline::SymmetricArray<int>>(world, 10);
    kept_messages = std::make_unique<beeline::Messages>(world);
    std::puts("kept");
  });
  if (how == "exit afterwards") std::exit(code);
  return code;
}
