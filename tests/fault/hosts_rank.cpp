// SPDX-License-Identifier: Apache-2.0
// hosts-rank ROUNDS [COUNT]: one of several ranks on hosts of their own. In each round every rank puts COUNT words to
// the next rank and waits for those of the previous rank. tests/python/test_hosts.py starts it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "beeline/beeline.hpp"

using namespace beeline;

int main(int argument_count, char** arguments) {
  const std::uint64_t rounds = argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1;
  const std::size_t count = argument_count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 20'000;
  return run([=](World& world) {
    const SymmetricArray<std::uint64_t> data(world, count), arrived(world, 1);
    const int ranks = world.size();
    const auto to = static_cast<std::uint32_t>((world.rank() + 1) % ranks);
    const auto from = static_cast<std::uint32_t>((world.rank() + ranks - 1) % ranks);
    world.barrier();
    std::printf("rank %d has met rank %u\n", world.rank(), to);
    std::fflush(stdout);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::vector<std::uint64_t> mine(count, round);
      put_signal(Thread{}, world.host_context(), data.data(), mine.data(), count, arrived.data(), round, to);
      if (wait(Thread{}, world.host_context(), arrived.data(), Compare::greater_equal, round, from) != Status::ok)
        world.check();
      if (data.data()[count - 1] < round) throw Error(Status::internal, "a signal came before its data", world.rank());
      if (quiet(Thread{}, world.host_context()) != Status::ok) world.check();
    }
    world.barrier();
    std::printf("rank %d has played %llu rounds\n", world.rank(), static_cast<unsigned long long>(rounds));
  });
}
