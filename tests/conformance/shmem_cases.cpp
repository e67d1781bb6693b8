// SPDX-License-Identifier: Apache-2.0
// The SHMEM context of a block, on a command queue.
#include <vector>

#include "beeline/control/shmem_context.hpp"
#include "beeline/host/command_queues.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::shmem_cases {

namespace {

using namespace beeline;

constexpr std::uint32_t blocks = 4, words = 500;

struct ShmemArguments {
  std::uint64_t *inbox, *outbox, *back;  ///< [blocks, words]
  std::uint64_t* arrived;                ///< [blocks]
  std::uint32_t ahead;
  CommandQueuesView channel;
};

/// Each block puts words, stores a count by `p`, waits for the previous rank's count, and gets its own words back.
struct ShmemKernel {
  static constexpr std::size_t shared_bytes = sizeof(ShmemState);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ShmemArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t rank = grid.block_rank();
    const std::size_t first = std::size_t{rank} * words;
    const ShmemContext shmem(block, ctx, a.channel.queue(rank));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.put_nbi(a.inbox + first, a.outbox + first, words, a.ahead));
    if (block.thread_rank() == block.size() - 1)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.p(&a.arrived[rank], words + rank, a.ahead));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.wait_until(&a.arrived[rank], Compare::equal, words + rank));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.get_nbi(a.back + first, a.inbox + first, words, a.ahead));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.quiet());
    for (std::size_t i = block.thread_rank(); i < words; i += block.size())
      BEELINE_DEVICE_CHECK_EQ(report, a.outbox[first + i], a.back[first + i]);
  }
};

/// A put that the engine refuses, and a bad peer.
struct ShmemRefusals {
  static constexpr std::size_t shared_bytes = sizeof(ShmemState);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ShmemArguments a) const {
    const ShmemContext shmem(grid.block(), ctx, a.channel.queue(0));
    const auto* const nowhere = reinterpret_cast<const std::uint64_t*>(std::uintptr_t{4096});
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, shmem.put_nbi(a.inbox, nowhere, words, a.ahead));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, shmem.quiet());
  }
};

BEELINE_CASE(post, shmem_contexts_of_blocks, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "the engine of a host rank does not reach GPU memory");
  constexpr std::size_t all = std::size_t{blocks} * words;
  for (const std::uint32_t count : {1u, blocks}) {  // one for all blocks, and one for each
    const CommandQueues queues(world, count);
    const SymmetricArray<std::uint64_t> memory(world, 3 * all), arrived(world, blocks);
    std::vector<std::uint64_t> mine(all), come(all);
    for (std::size_t i = 0; i < all; ++i) {
      mine[i] = i * 64 + static_cast<std::uint64_t>(test.rank());
      come[i] = i * 64 + static_cast<std::uint64_t>(test.behind(1));
    }
    world.copy(memory.data() + all, mine.data(), all * sizeof mine[0]);
    world.barrier();
    const ShmemArguments arguments{memory.data(),
                                   memory.data() + all,
                                   memory.data() + 2 * all,
                                   arrived.data(),
                                   static_cast<std::uint32_t>(test.ahead(1)),
                                   queues.channel()};
    test.run(test.shape(blocks, true), ShmemKernel{}, arguments, "a SHMEM context");
    world.copy(mine.data(), memory.data(), all * sizeof mine[0]);
    BEELINE_CHECK(mine == come);
    world.barrier();
  }
}

BEELINE_CASE(post, shmem_refusals, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "the engine of a host rank does not reach GPU memory");
  const CommandQueues queues(world);
  const SymmetricArray<std::uint64_t> memory(world, words);
  const ShmemArguments arguments{
      memory.data(), memory.data(), nullptr, nullptr, static_cast<std::uint32_t>(test.ahead(1)), queues.channel()};
  check_error(Status::invalid_argument, {"not there"},
              [&] { test.run(test.shape(1, false), ShmemRefusals{}, arguments, "refused"); });
  test.check_report("refused");
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::shmem_cases
