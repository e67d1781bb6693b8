// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method mailboxes: threads store each number straight into a box at its owner, in the global address space. Source:
/// seed 000 section 6.9.3, GGAS.

#include "rounds.hpp"

namespace random_access {

namespace {

struct Storing {
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* box(const beeline::Context& ctx, const Boxes& boxes,
                                                       std::uint64_t round, std::uint32_t owner,
                                                       std::uint32_t block) const {
    return ctx.at(boxes.box(round, ctx.rank, block), owner);
  }
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Boxes& boxes, std::uint64_t round,
                                                         std::uint32_t block_rank, const std::uint32_t* counts) const {
    auto status = beeline::Status::ok;
    for (std::uint32_t rank = block.thread_rank(); rank < ctx.size; rank += block.size())
      if (rank != ctx.rank && status == beeline::Status::ok)
        status = beeline::signal(beeline::Thread{}, ctx, boxes.signal(round, ctx.rank, block_rank),
                                 signal_value(round, counts[rank]), rank);
    return status;
  }
};

class Mailboxes final : public InRounds<Storing> {
 public:
  using InRounds::InRounds;

 private:
  [[nodiscard]] Storing sender() const override { return {}; }
};

std::string why_not(const beeline::Config& config) {
  const std::string why = why_no_stores(config);
  return why.empty() ? why_too_many(config) : why;
}

}  // namespace

MethodInfo mailboxes() {
  return MethodInfo::of<Mailboxes>({"mailboxes",
                                    "threads store numbers into a box at the owner, which applies them; a box for each "
                                    "sender",
                                    "device/peer/signal", why_not});
}

}  // namespace random_access
