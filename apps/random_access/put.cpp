// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method put: a block collects the numbers for each owner in a buffer of its own, and puts the buffer into the owner's
/// box. So numbers travel together, also to other nodes. Source: seed 000 section 6.9.3, RMA.

#include "rounds.hpp"

namespace random_access {

namespace {

struct Putting {
  std::uint64_t* buffers;  ///< [ranks, blocks, 2 lag, box_words] symmetric, by owner, block and round

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* box(const beeline::Context&, const Boxes& boxes, std::uint64_t round,
                                                       std::uint32_t owner, std::uint32_t block) const {
    return buffers + boxes.place(round, owner, block) * box_words;
  }
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Boxes& boxes, std::uint64_t round,
                                                         std::uint32_t block_rank, const std::uint32_t* counts) const {
    auto status = beeline::Status::ok;
    for (std::uint32_t step = 1; step < ctx.size; ++step) {  // each rank begins with another one
      const std::uint32_t rank = (ctx.rank + step) % ctx.size;
      if (status == beeline::Status::ok)
        status = beeline::put_signal(block, ctx, boxes.box(round, ctx.rank, block_rank),
                                     static_cast<const std::uint64_t*>(box(ctx, boxes, round, rank, block_rank)),
                                     counts[rank], boxes.signal(round, ctx.rank, block_rank),
                                     signal_value(round, counts[rank]), rank);
    }
    block.sync();  // all threads have read the counts
    return status;
  }
};

class Put final : public InRounds<Putting> {
 public:
  explicit Put(Table& table) : InRounds(table), buffers_(world(), places() * box_words) {}

 private:
  [[nodiscard]] Putting sender() const override { return {buffers_.data()}; }

  beeline::SymmetricArray<std::uint64_t> buffers_;
};

}  // namespace

MethodInfo put() {
  return MethodInfo::of<Put>({"put", "blocks put the numbers for an owner together into its box, and it applies them",
                              "device/peer/signal", why_too_many});
}

}  // namespace random_access
