// SPDX-License-Identifier: Apache-2.0
/// @file
/// ending-rank RANK HOW: all ranks meet at a barrier; then RANK (-1: each) stops, throws, or calls exit or _exit;
/// others wait for it in a barrier. With `fork` it forks: the child's stores reach no rank, its operations are refused,
/// and it ends like the parent, which waits for its end. With `keep` all ranks keep objects that outlive the world.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/device/atomic.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/messages.hpp"
#include "beeline/host/run.hpp"

namespace {

std::unique_ptr<beeline::SymmetricArray<int>> kept;  // destroyed after main
std::unique_ptr<beeline::Messages> kept_messages;
std::unique_ptr<beeline::Stream> kept_stream;

/// Whether operations are refused in this forked process. It first stores into all ranks' memory.
bool is_refused_in_child(beeline::World& world, std::uint64_t* words) {
  using namespace beeline;
  const Context& ctx = world.host_context();
  const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
  const std::uint64_t value = 7;
  std::uint64_t got = 0;
  const Thread thread;
  for (std::uint32_t each = 0; each < ctx.size; ++each) *ctx.at(words, each) = value;
  for (const Status status :
       {put(thread, ctx, words, &value, 1, peer), get(thread, ctx, &got, words, 1, peer),
        put_value(ctx, words, value, peer), signal(thread, ctx, words, value, peer),
        put_signal(thread, ctx, words, &value, 1, words, value, peer), atomic_add(ctx, words, value, peer)})
    if (status != Status::invalid_argument) return false;
  return wait(thread, ctx, words, Compare::equal, value + 1, peer) == Status::aborted;
}

/// Returns in both processes; in the parent, after the child has ended with status 1.
void fork_and_wait(beeline::World& world, std::uint64_t* words) {
  const pid_t child = ::fork();
  if (child == 0 && !is_refused_in_child(world, words)) std::_Exit(98);
  if (child == 0) return;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 1) std::exit(99);
  std::puts("the child has ended");
}

void end(beeline::World& world, std::uint64_t* words, const std::string& how) {
  if (how == "stop") std::raise(SIGSTOP);
  if (how == "exit 0") std::exit(0);
  if (how == "exit 3") std::exit(3);
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "_exit 0") _exit(0);
  if (how == "quick_exit 0") std::quick_exit(0);
  if (how == "fork") fork_and_wait(world, words);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  const int ending = std::atoi(arguments[1]);
  const std::string how = arguments[2];
  const int code = beeline::run([&](beeline::World& world) {
    const beeline::SymmetricArray<std::uint64_t> words(world, 1);
    world.barrier();
    if (world.rank() == ending || ending < 0) end(world, words.data(), how);
    world.barrier();
    if (words.data()[0] != 0) throw std::runtime_error("a forked process has stored into the memory of a rank");
    if (how != "keep") return;
    kept = std::make_unique<beeline::SymmetricArray<int>>(world, 10);
    kept_messages = std::make_unique<beeline::Messages>(world);
    kept_stream = world.make_stream();
    kept_stream->wait_signal(words.data(), 1);  // work that is pending when the world ends
    kept_stream->fill(kept->data(), 0, sizeof(int));
    if (world.rank() == 0)
      for (int rank = 0; rank < world.size(); ++rank) *world.at(words.data(), rank) = 1;
    std::puts("kept");
  });
  try {
    if (kept_stream) kept_stream->fill(kept->data(), 0, sizeof(int));
  } catch (const beeline::Error& error) {
    std::puts(error.what());
  }
  if (how == "exit afterwards") std::exit(code);
  return code;
}
