// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One kernel per iteration that computes and communicates: the common part of the methods `in_kernel` and
/// `block_signals`, which transfer the tiles of an outermost plane differently.
/// Source: seed 000 section 5.8.1, listing 5.6.

#include "domain.hpp"
#include "method.hpp"

namespace himeno {

/// Data of a block while it computes. The edges are not part of it: they are indexed at run time and therefore lie in
/// local memory, and the whole structure would have to lie there with them.
struct Work {
  Fields fields;
  Tiling tiling;
  Step step;

  /// The elements of an outermost plane that are covered by `tiles` tiles from `first_tile` on. Tiles cover only the
  /// interior rows: the boundary rows never change.
  struct Range {
    std::ptrdiff_t first, count;
  };
  [[nodiscard]] BEELINE_HOST_DEVICE Range range(unsigned first_tile, unsigned tiles) const {
    const auto tile_floats = static_cast<std::ptrdiff_t>(tiling.tile_vectors) * vector_cells;
    const std::ptrdiff_t first = fields.row + first_tile * tile_floats, end = fields.plane() - fields.row;
    const std::ptrdiff_t last = first + tiles * tile_floats < end ? first + tiles * tile_floats : end;
    return {first, last - first};
  }
};

/// Puts `range` of the plane that `step` computed at `edge` into the peer's halo, then sets `signal` on the peer.
template <class BlockGroup>
BEELINE_HOST_DEVICE void put_part(const BlockGroup& block, const beeline::Context& ctx, const Work& work,
                                  const Edge& edge, const Work::Range& range, std::uint64_t* signal) {
  float* p = work.fields.pressure(work.step.iteration + 1) + range.first;
  beeline::put_signal(block, ctx, p + edge.theirs, p + edge.mine, static_cast<std::size_t>(range.count), signal,
                      work.step.tag() + 1, edge.peer);
}

/// The kernel. `Handover` has
///   await(block, ctx, work, edge, tile, side)      blocks until the part of the halo of `side` that `tile` reads has
///   arrived
///   hand_over(block, ctx, work, edge, tile, side)  called when the block has computed its tile of the outermost plane
///   at `side`
/// where `edge` is the edge of `side`.
template <class Handover>
struct UpdateAndSend {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Work work, Edges edges, Sums sums,
                                      Mailbox mailbox, Handover handover) const {
    const auto& block = grid.block();
    const Fields& f = work.fields;
    const Step& step = work.step;
    // The last block often has no tile, so it exchanges the sums of the previous iteration.
    if (step.needs_halos() && grid.block_rank() == grid.blocks() - 1 &&
        sum_previous(grid, ctx, sums, mailbox, step) != beeline::Status::ok)
      return;
    const StoreHere store{f.pressure(step.iteration + 1)};
    double gosa = 0;
    for (unsigned item = grid.block_rank(); item < work.tiling.items(); item += grid.blocks()) {
      const unsigned tile = item % work.tiling.tiles;
      const Planes part = planes_of_item(work.tiling, {1, f.planes + 1}, item);
      const auto update = [&](Planes some) {
        gosa += update_tile(block, f, work.tiling, f.pressure(step.iteration), tile, some, store);
      };
      if (!step.communicate) {
        update(part);
        continue;
      }
      if (step.needs_halos() && await_halos(block, ctx, work, edges, handover, tile, part) != beeline::Status::ok)
        return;
      edges_first(edges, part, update,
                  [&](unsigned side) { handover.hand_over(block, ctx, work, edges.side[side], tile, side); });
    }
    store_block_gosa(grid, sums, static_cast<unsigned>(step.iteration % 2), gosa);
  }

 private:
  template <class BlockGroup>
  BEELINE_HOST_DEVICE static beeline::Status await_halos(const BlockGroup& block, const beeline::Context& ctx,
                                                         const Work& work, const Edges& edges, const Handover& handover,
                                                         unsigned tile, Planes part) {
    beeline::Status status = beeline::Status::ok;
    BEELINE_NO_UNROLL
    for (unsigned side = 0; side < sides && status == beeline::Status::ok; ++side)
      if (edges.touched(side, part)) status = handover.await(block, ctx, work, edges.side[side], tile, side);
    return status;
  }
};

/// Waits for signals [first, last) of one side to reach `tag`. Every thread of `block` calls it.
template <class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status await_signals(const BlockGroup& block, const beeline::Context& ctx,
                                                                const std::uint64_t* first, unsigned count,
                                                                std::uint64_t tag, std::uint32_t peer) {
  beeline::Status status = beeline::Status::ok;
  for (unsigned i = block.thread_rank(); i < count && status == beeline::Status::ok; i += block.size())
    status = beeline::wait(beeline::Thread{}, ctx, first + i, beeline::Compare::greater_equal, tag, peer);
  return beeline::agree(block, status);
}

/// Exchanges the last iteration's gosa.
struct SumLast {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Sums sums, Mailbox mailbox,
                                      Step step, unsigned blocks) const {
    const auto slot = static_cast<unsigned>(step.iteration % 2);
    const double total = total_of_blocks(grid.block(), sums.threads, sums, slot, slot + 1, blocks);
    if (exchange_gosa(grid.block(), ctx, mailbox, step, total) == beeline::Status::ok)
      static_cast<void>(collect(grid.block(), ctx, mailbox, step.tag()));
  }
};

/// The common host side of these methods. A derived class chooses how tiles are transferred.
template <class Handover>
class OneKernelAnIteration : public Method {
 public:
  explicit OneKernelAnIteration(Domain& domain)
      : Method(domain), window_(world()),
        shape_(domain.shape<UpdateAndSend<Handover>, Work, Edges, Sums, Mailbox, Handover>()),
        tiling_(domain.tiling(shape_.blocks, domain.slab().planes)) {}

  void iterate(int iterations, bool communicate) override {
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads, .waits = true},
                      UpdateAndSend<Handover>{}, Work{domain().fields(), tiling_, step}, domain().edges(),
                      domain().sums(), domain().mailbox(), handover_);
      window_.advance();
    }
    --step.iteration;
    if (communicate)
      beeline::launch(world(), {.waits = true}, SumLast{}, domain().sums(), domain().mailbox(), step, shape_.blocks);
    finish();
  }

 protected:
  [[nodiscard]] const Tiling& tiling() const { return tiling_; }
  void set_handover(const Handover& handover) { handover_ = handover; }

 private:
  LaunchWindow window_;
  Shape shape_;
  Tiling tiling_;
  Handover handover_{};
};

}  // namespace himeno
