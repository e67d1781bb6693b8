// SPDX-License-Identifier: Apache-2.0
// One of two ranks on hosts of their own, which play ping-pong until they have met so often, or for ever: then one says
// how the world ended. tests/python/test_hosts.py starts it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "beeline/beeline.hpp"

using namespace beeline;

int main(int argument_count, char** arguments) {
  const std::uint64_t rounds = argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1;
  return run([rounds](World& world) {
    constexpr std::size_t count = 20'000;
    const SymmetricArray<std::uint64_t> data(world, count), arrived(world, 1);
    const std::uint32_t peer = world.rank() == 0 ? 1 : 0;
    world.barrier();
    std::printf("rank %d has met rank %u\n", world.rank(), peer);
    std::fflush(stdout);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::vector<std::uint64_t> mine(count, round);
      put_signal(Thread{}, world.host_context(), data.data(), mine.data(), count, arrived.data(), round, peer);
      if (wait(Thread{}, world.host_context(), arrived.data(), Compare::greater_equal, round, peer) != Status::ok)
        world.check();
      if (data.data()[count - 1] < round) throw Error(Status::internal, "a signal came before its data", world.rank());
      if (quiet(Thread{}, world.host_context()) != Status::ok) world.check();
    }
    world.barrier();
    std::printf("rank %d has played %llu rounds\n", world.rank(), static_cast<unsigned long long>(rounds));
  });
}
