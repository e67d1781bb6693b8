// SPDX-License-Identifier: Apache-2.0
// A context that a kernel keeps in the block's shared memory instead of constant memory.
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::context_cases {

namespace {

using namespace beeline;

struct RingArguments {
  std::uint64_t* words;   ///< [2, blocks * block_words] sent, received
  std::uint64_t* signal;  ///< [blocks]
  std::uint32_t block_words, ahead, behind;
};

BEELINE_HOST_DEVICE std::uint64_t word_of(std::uint32_t rank, std::uint32_t block, std::uint32_t index) {
  return rank * 1'000'003ull + block * 10'007ull + index;
}

/// A ring of puts, the owner of an address, and a barrier, all by the given context.
template <class Grid>
BEELINE_HOST_DEVICE void communicate(const Grid& grid, const Context& ctx, DeviceReport* report,
                                     const RingArguments& a) {
  const auto& block = grid.block();
  std::uint64_t* out = a.words + grid.block_rank() * a.block_words;
  std::uint64_t* in = out + grid.blocks() * a.block_words;
  for (std::uint32_t i = block.thread_rank(); i < a.block_words; i += block.size())
    out[i] = word_of(ctx.rank, grid.block_rank(), i);
  block.sync();
  std::uint64_t* signal = a.signal + grid.block_rank();
  BEELINE_DEVICE_CHECK_EQ(report, Status::ok, put_signal(block, ctx, in, out, a.block_words, signal, 1, a.ahead));
  BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, signal, Compare::equal, 1, a.behind));
  for (std::uint32_t i = block.thread_rank(); i < a.block_words; i += block.size())
    BEELINE_DEVICE_CHECK_EQ(report, word_of(a.behind, grid.block_rank(), i), in[i]);
  BEELINE_DEVICE_CHECK_EQ(report, a.ahead, ctx.owner_of(ctx.at(in, a.ahead)));
  if (grid.block_rank() == 0) BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(block, ctx));
}

struct SharedContextKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RingArguments a) const {
#if BEELINE_ON_GPU
    __shared__ Context kept;
    if (grid.block().thread_rank() == 0) kept = ctx;
    grid.block().sync();
#else
    const Context kept = ctx;
#endif
    communicate(grid, kept, report, a);
  }
};

BEELINE_CASE(context, context_in_shared_memory, 1) {
  constexpr unsigned blocks = 3;
  constexpr std::uint32_t block_words = 700;
  const SymmetricArray<std::uint64_t> words(test.world(), 2 * blocks * block_words, test.common_heap()),
      signals(test.world(), blocks, test.common_heap());
  test.run(test.shape(blocks, true), SharedContextKernel{},
           RingArguments{words.data(), signals.data(), block_words, static_cast<std::uint32_t>(test.ahead(1)),
                         static_cast<std::uint32_t>(test.behind(1))},
           "a context in shared memory");
  test.world().barrier();
}

}  // namespace

}  // namespace beeline_test::context_cases
