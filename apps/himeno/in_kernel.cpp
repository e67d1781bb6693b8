// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 4: the compute kernel communicates. One kernel an iteration; blocks with points at a boundary wait for the
/// neighbour's plane at their start, compute the outermost plane first, and the last of them, found by a counter, sends
/// it with put_signal while all go on with the planes behind it. Two signals for a side, odd and even iterations.
///
/// One block stores about 45 GB/s into a peer, so large planes are cut into sections, each with its own last block.
/// Source: seed 000 section 5.8.1, listing 5.6.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "last_block.hpp"
#include "method.hpp"

namespace himeno {

namespace {

constexpr unsigned max_sections = 16;

/// How outermost planes are handed over, in sections of whole tiles.
struct Handover {
  std::uint64_t* arrived;   ///< [2 (odd, even)][sides][max_sections], symmetric: tag of the field whose section is here
  std::uint32_t* finished;  ///< [sides][max_sections]: tiles of the section that are computed
  unsigned sections, tiles_of_section;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(std::uint64_t tag, unsigned side, unsigned section) const {
    return arrived + ((tag % 2) * sides + side) * max_sections + section;
  }
};

struct UpdateAndSend {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Fields f, Edges edges,
                                      Tiling tiling, Sums sums, Mailbox mailbox, Handover handover, Step step) const {
    const auto& block = grid.block();
    // The last block often has no tile: it exchanges the sums of the iteration before.
    if (step.needs_halos() && grid.block_rank() == grid.blocks() - 1 &&
        sum_previous(grid, ctx, sums, mailbox, step) != beeline::Status::ok)
      return;
    const StoreHere store{f.pressure(step.iteration + 1)};
    double gosa = 0;
    for (unsigned item = grid.block_rank(); item < tiling.items(); item += grid.blocks()) {
      const unsigned tile = item % tiling.tiles;
      const Planes part = planes_of_item(tiling, {1, f.planes + 1}, item);
      const auto update = [&](Planes some) {
        gosa += update_tile(block, f, tiling, f.pressure(step.iteration), tile, some, store);
      };
      if (!step.communicate) {
        update(part);
        continue;
      }
      if (step.needs_halos() && await_halos(block, ctx, edges, part, handover, step.tag()) != beeline::Status::ok)
        return;
      edges_first(edges, part, update, [&](unsigned side) {
        hand_over(block, ctx, f, edges.side[side], tiling, handover, tile, side, step);
      });
    }
    store_block_gosa(grid, sums, static_cast<unsigned>(step.iteration % 2), gosa);
  }

 private:
  template <class Grid>
  BEELINE_HOST_DEVICE static beeline::Status sum_previous(const Grid& grid, const beeline::Context& ctx,
                                                          const Sums& sums, const Mailbox& mailbox, Step step) {
    --step.iteration;
    const auto slot = static_cast<unsigned>(step.iteration % 2);
    double* scratch = sums.threads + grid.block_rank() * grid.block().size();
    const double total = total_of_blocks(grid.block(), scratch, sums, slot, slot + 1, grid.blocks());
    const beeline::Status status = exchange_gosa(grid.block(), ctx, mailbox, step, total);
    grid.block().sync();  // the scratch is used again below
    return status;
  }

  /// Waits for every section of the halos that the planes `part` read.
  template <class BlockGroup>
  BEELINE_HOST_DEVICE static beeline::Status await_halos(const BlockGroup& block, const beeline::Context& ctx,
                                                         const Edges& edges, Planes part, const Handover& handover,
                                                         std::uint64_t tag) {
    if (!edges.touched(lower, part) && !edges.touched(upper, part)) return beeline::Status::ok;
    beeline::Status status = beeline::Status::ok;
    for (unsigned side = 0; side < sides; ++side) {
      if (!edges.touched(side, part)) continue;
      for (unsigned section = block.thread_rank(); section < handover.sections && status == beeline::Status::ok;
           section += block.size())
        status = beeline::wait(beeline::Thread{}, ctx, handover.signal(tag, side, section),
                               beeline::Compare::greater_equal, tag, edges.side[side].peer);
    }
    return beeline::agree(block, status);
  }

  /// Counts the tile; the last of its section sends the section and its signal.
  template <class BlockGroup>
  BEELINE_HOST_DEVICE static void hand_over(const BlockGroup& block, const beeline::Context& ctx, const Fields& f,
                                            const Edge& edge, const Tiling& tiling, const Handover& handover,
                                            unsigned tile, unsigned side, const Step& step) {
    const unsigned section = tile / handover.tiles_of_section, first_tile = section * handover.tiles_of_section;
    const unsigned rest = tiling.tiles - first_tile;
    const unsigned tiles = rest < handover.tiles_of_section ? rest : handover.tiles_of_section;
    if (!is_last(block, &handover.finished[side * max_sections + section], tiles)) return;
    // Tiles cover the interior rows: the boundary rows never change.
    const auto tile_floats = static_cast<std::ptrdiff_t>(tiling.tile_vectors) * vector_cells;
    const std::ptrdiff_t first = f.row + first_tile * tile_floats, end = f.plane() - f.row;
    const std::ptrdiff_t last = first + tiles * tile_floats < end ? first + tiles * tile_floats : end;
    float* p = f.pressure(step.iteration + 1);
    beeline::put_signal(block, ctx, p + edge.theirs + first, p + edge.mine + first,
                        static_cast<std::size_t>(last - first),
                        handover.signal(step.tag() + 1, opposite(side), section), step.tag() + 1, edge.peer);
  }
};

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

class InKernel final : public Method {
 public:
  explicit InKernel(Domain& domain)
      : Method(domain), arrived_(world(), 2 * sides * max_sections), finished_(world(), sides * max_sections),
        window_(world()), shape_(domain.shape<UpdateAndSend, Fields, Edges, Tiling, Sums, Mailbox, Handover, Step>()),
        tiling_(domain.tiling(shape_.blocks, domain.slab().planes)) {
    constexpr std::size_t section_bytes = 32768;
    const auto wanted = static_cast<unsigned>(domain.plane_bytes() / section_bytes);
    const unsigned at_most = std::min(std::clamp(wanted, 1u, max_sections), tiling_.tiles);
    const unsigned tiles_of_section = (tiling_.tiles + at_most - 1) / at_most;
    handover_ = {arrived_.data(), finished_.data(), (tiling_.tiles + tiles_of_section - 1) / tiles_of_section,
                 tiles_of_section};
  }

  void run(int iterations, bool communicate) override {
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads, .waits = true}, UpdateAndSend{},
                      domain().fields(), domain().edges(), tiling_, domain().sums(), domain().mailbox(), handover_,
                      step);
      window_.advance();
    }
    --step.iteration;
    if (communicate)
      beeline::launch(world(), {.waits = true}, SumLast{}, domain().sums(), domain().mailbox(), step, shape_.blocks);
    world().synchronize();
  }

 private:
  beeline::SymmetricArray<std::uint64_t> arrived_;
  beeline::SymmetricArray<std::uint32_t> finished_;
  LaunchWindow window_;
  Shape shape_;
  Tiling tiling_;
  Handover handover_{};
};

}  // namespace

std::unique_ptr<Method> make_in_kernel(Domain& domain) { return std::make_unique<InKernel>(domain); }

}  // namespace himeno
