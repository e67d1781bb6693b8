// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 4b: like method 4, but without the counter that finds a last block. Each block puts its own part of the
/// outermost plane, a tile, and sets the signal of that part. A block waits only for the parts of the neighbour's plane
/// that its tile reads. This makes many small transfers, each with its own release.
/// Source: seed 000 section 5.8.1, the variant that the section sets aside.

#include "beeline/device/put_get.hpp"
#include "update_and_send.hpp"

namespace himeno {

namespace {

/// Transfer of outermost planes, tile by tile.
///
/// A block that has waited for the parts that its tile reads may overwrite its part of the neighbour's halo, two
/// iterations later. Two tiles read each other or neither: the blocks whose signals this block awaited had read this
/// block's part before they set the signals.
struct Tiles {
  std::uint64_t* arrived;  ///< tag of the field whose part is in the halo

  /// Waits for the tiles with points in the same rows and columns as this tile or next to them.
  template <class BlockGroup>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status await(const BlockGroup& block, const beeline::Context& ctx,
                                                          const Work& work, const Edge& edge, unsigned tile,
                                                          unsigned side) const {
    const Tiling& tiling = work.tiling;
    // A tile is a range of vectors, row after row; it reads points up to one row and one vector away.
    const unsigned reach = static_cast<unsigned>(work.fields.row / vector_cells) + 1;
    const unsigned tiles_away = (reach + tiling.tile_vectors - 1) / tiling.tile_vectors;
    const unsigned first = tile > tiles_away ? tile - tiles_away : 0;
    const unsigned behind = tiling.tiles - tile > tiles_away + 1 ? tile + tiles_away + 1 : tiling.tiles;
    return await_signals(block, ctx, signals(tiling, side) + first, behind - first, work.step.tag(), edge.peer);
  }

  template <class BlockGroup>
  BEELINE_HOST_DEVICE void hand_over(const BlockGroup& block, const beeline::Context& ctx, const Work& work,
                                     const Edge& edge, unsigned tile, unsigned side) const {
    block.sync();  // all threads contributed to the tile
    put_part(block, ctx, work, edge, work.range(tile, 1), signals(work.tiling, opposite(side)) + tile);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signals(const Tiling& tiling, unsigned side) const {
    return arrived + side * tiling.tiles;
  }
};

class BlockSignals final : public OneKernelAnIteration<Tiles> {
 public:
  explicit BlockSignals(Domain& domain)
      : OneKernelAnIteration(domain), arrived_(world(), std::size_t{sides} * tiling().tiles) {
    set_handover({arrived_.data()});
  }

 private:
  beeline::SymmetricArray<std::uint64_t> arrived_;
};

}  // namespace

MethodInfo block_signals() {
  return MethodInfo::of<BlockSignals>(
      {"block_signals", "each block puts its own part of a boundary, with a signal of its own"});
}

}  // namespace himeno
