// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gosa, the sum of the squared residuals: summed in a block, over a rank's blocks, and over the ranks, every
/// iteration.
///
/// Ranks sum through mailboxes: each puts its sum into every other rank's mailbox, and adds up all sums in rank order,
/// so that all get the same bits. A sum is two words, each with 32 bits of value and 32 bits of tag: the arrival of the
/// words is the arrival of the message, without a fence. A rank collects tag t - 2 before it delivers tag t, so no rank
/// is more than four tags ahead of a mailbox's reader, and eight slots are enough.

#include <bit>
#include <cstdint>

#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/put_get.hpp"
#include "common/block_total.hpp"
#include "fields.hpp"

namespace himeno {

/// The partial sums, in this rank's memory.
struct Sums {
  double* threads;  ///< scratch, [threads of the largest grid]; see block_total
  double* blocks;   ///< [2][max_blocks]: the sums of two launches
};
inline constexpr unsigned max_blocks = 4096;

/// The memory through which ranks exchange sums.
struct Mailbox {
  std::uint64_t* words;  ///< [mailbox_slots][ranks][2], symmetric, polled by the receiver
  double* arrived;       ///< [ranks], this rank's memory
  double* total;         ///< the sum over all ranks from the last collection
};
inline constexpr std::uint64_t mailbox_slots = 8;

using apps::block_total;
using apps::max_block_threads;

/// Stores the block's sum in `sums.blocks[slot * max_blocks + block rank]`.
template <class Grid>
BEELINE_HOST_DEVICE void store_block_gosa(const Grid& grid, const Sums& sums, unsigned slot, double mine) {
  double* scratch = sums.threads + grid.block_rank() * grid.block().size();
  const double total = block_total(grid.block(), scratch, mine);
  if (grid.block().thread_rank() == 0) sums.blocks[slot * max_blocks + grid.block_rank()] = total;
}

/// Adds up the sums of `blocks` blocks in each of the slots [first, last); valid on thread 0.
template <class BlockGroup>
BEELINE_HOST_DEVICE double total_of_blocks(const BlockGroup& block, double* scratch, const Sums& sums, unsigned first,
                                           unsigned last, unsigned blocks) {
  double mine = 0;
  for (unsigned slot = first; slot < last; ++slot)
    for (unsigned i = block.thread_rank(); i < blocks; i += block.size()) mine += sums.blocks[slot * max_blocks + i];
  return block_total(block, scratch, mine);
}

namespace detail {

BEELINE_HOST_DEVICE inline std::uint64_t* mailbox_word(const Mailbox& mailbox, std::uint64_t tag, std::uint32_t ranks,
                                                       std::uint32_t from) {
  return mailbox.words + ((tag % mailbox_slots) * ranks + from) * 2;
}

/// Polls relaxed, because the tag comes with the value, and an acquiring poll would drop the first-level cache under
/// computing blocks of this device. The last load acquires, so that this rank's next delivery is ordered after it.
BEELINE_HOST_DEVICE inline bool poll_word(const std::uint64_t* word, std::uint64_t tag, std::uint64_t& observed_tag,
                                          std::uint64_t& value) {
  const beeline::machine::SystemAtomic<std::uint64_t> shared(const_cast<std::uint64_t&>(*word));
  observed_tag = shared.load(std::memory_order_relaxed) >> 32;
  if (observed_tag != tag) return false;
  value = shared.load(std::memory_order_acquire) & 0xffffffffu;
  return true;
}

}  // namespace detail

/// Puts this rank's sum of iteration `tag` into the mailbox of `peer`. One thread calls it. Does not block.
BEELINE_HOST_DEVICE inline void post_sum(const beeline::Context& ctx, const Mailbox& mailbox, std::uint64_t tag,
                                         double sum, std::uint32_t peer) {
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  std::uint64_t* word = detail::mailbox_word(mailbox, tag, ctx.size, ctx.rank);
  beeline::put_value(ctx, word, (tag << 32) | (bits >> 32), peer);
  beeline::put_value(ctx, word + 1, (tag << 32) | (bits & 0xffffffffu), peer);
}

/// Sends this rank's sum of iteration `tag` to every rank. One thread calls it. Does not block.
BEELINE_HOST_DEVICE inline void deliver(const beeline::Context& ctx, const Mailbox& mailbox, std::uint64_t tag,
                                        double sum) {
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) post_sum(ctx, mailbox, tag, sum, peer);
}

/// Waits for the sum of iteration `tag` of rank `from`. One thread calls it.
[[nodiscard]] BEELINE_HOST_DEVICE inline beeline::Status receive_sum(const beeline::Context& ctx,
                                                                     const Mailbox& mailbox, std::uint64_t tag,
                                                                     std::uint32_t from, double& sum) {
  const std::uint64_t* words = detail::mailbox_word(mailbox, tag, ctx.size, from);
  std::uint64_t bits = 0;
  for (int half = 0; half < 2; ++half) {
    std::uint64_t value = 0;
    const beeline::Awaited awaited{beeline::Operation::user, from, tag, tag, beeline::Compare::equal};
    const beeline::Status status = beeline::poll_until(
        ctx, awaited, beeline::Timeout::none(),
        [&](std::uint64_t& observed) { return detail::poll_word(words + half, tag, observed, value); });
    if (status != beeline::Status::ok) return status;
    bits = bits << 32 | value;
  }
  sum = std::bit_cast<double>(bits);
  return beeline::Status::ok;
}

/// Waits for every rank's sum of iteration `tag`, and leaves their total in `mailbox.total`.
/// Every thread of `group` calls it, and gets the same status.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status collect(const Group& group, const beeline::Context& ctx,
                                                          const Mailbox& mailbox, std::uint64_t tag) {
  beeline::Status status = beeline::Status::ok;
  group.sync();  // ordered after the reading of the previous collect's total
  for (std::uint32_t from = group.thread_rank(); from < ctx.size && status == beeline::Status::ok; from += group.size())
    status = receive_sum(ctx, mailbox, tag, from, mailbox.arrived[from]);
  status = beeline::agree(group, status);
  if (status == beeline::Status::ok && group.thread_rank() == 0) {
    double total = 0;
    for (std::uint32_t from = 0; from < ctx.size; ++from) total += mailbox.arrived[from];
    *mailbox.total = total;
  }
  return status;
}

/// Called by one block at the end of an iteration of the device methods. Sends this rank's sum of iteration `step`
/// (`total`, valid on thread 0), and receives the sums of the previous iteration, which had one iteration's time to
/// arrive.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status exchange_gosa(const BlockGroup& block, const beeline::Context& ctx,
                                                                const Mailbox& mailbox, const Step& step,
                                                                double total) {
  if (block.thread_rank() == 0) deliver(ctx, mailbox, step.tag(), total);
  return step.iteration == 0 ? beeline::Status::ok : collect(block, ctx, mailbox, step.tag() - 1);
}

/// Called by one block: exchanges the sums that the blocks of `grid` stored in the iteration before `step`, in the slot
/// of that iteration's parity.
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status sum_previous(const Grid& grid, const beeline::Context& ctx,
                                                               const Sums& sums, const Mailbox& mailbox, Step step) {
  --step.iteration;
  const auto slot = static_cast<unsigned>(step.iteration % 2);
  double* scratch = sums.threads + grid.block_rank() * grid.block().size();
  const double total = total_of_blocks(grid.block(), scratch, sums, slot, slot + 1, grid.blocks());
  const beeline::Status status = exchange_gosa(grid.block(), ctx, mailbox, step, total);
  grid.block().sync();  // the scratch is about to be reused
  return status;
}

}  // namespace himeno
