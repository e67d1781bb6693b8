// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare copy by stores of a kernel's threads to the peer: no library, no signal, and only one fence, at the end.

#include <cstdint>

#include "harness/timed_grid.hpp"

namespace beeline::bench {

/// Stores `bytes` from `from` to `to`, `messages` times. Each block stores its share, 16 bytes at a time, four in
/// flight.
struct BareStore {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, BlockTimes* times, std::byte* to,
                                      const std::byte* from, std::uint64_t bytes, std::uint32_t messages) const {
    const auto& block = grid.block();
    const Share share = share_of(bytes, grid.block_rank(), grid.blocks());
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < messages; ++i) store(block, to + share.offset, from + share.offset, share.bytes);
    machine::fence_system();
    block.sync();
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }

 private:
  template <class Group>
  static BEELINE_HOST_DEVICE void store(const Group& group, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    using Word = machine::Word16;
    auto* out = reinterpret_cast<Word*>(to);
    const auto* in = reinterpret_cast<const Word*>(from);
    const std::uint64_t words = bytes / sizeof(Word), threads = group.size();
    std::uint64_t i = group.thread_rank();
    for (; i + 3 * threads < words; i += 4 * threads) {
      const Word a = in[i], b = in[i + threads], c = in[i + 2 * threads], d = in[i + 3 * threads];
      out[i] = a, out[i + threads] = b, out[i + 2 * threads] = c, out[i + 3 * threads] = d;
    }
    for (; i < words; i += threads) out[i] = in[i];
    for (i = words * sizeof(Word) + group.thread_rank(); i < bytes; i += threads) to[i] = from[i];
  }
};

}  // namespace beeline::bench
