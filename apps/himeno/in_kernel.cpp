// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 4: the compute kernel communicates. There is one kernel per iteration. Blocks with points at a boundary wait
/// for the neighbour's plane at their start, and compute the outermost plane first. The last of these blocks, found by
/// a counter, sends the plane with put_signal; the other blocks compute the next planes meanwhile. Each side has two
/// signals, for odd and even iterations.
///
/// One block stores about 45 GB/s to a peer, so large planes are cut into sections, each with its own last block.
/// Source: seed 000 section 5.8.1, listing 5.6.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "common/last_block.hpp"
#include "update_and_send.hpp"

namespace himeno {

namespace {

constexpr unsigned max_sections = 16;

/// Transfer of outermost planes, in sections of whole tiles.
struct Sections {
  std::uint64_t* arrived;   ///< [2 (odd, even)][sides][max_sections], symmetric: tag of the field whose section is here
  std::uint32_t* finished;  ///< [sides][max_sections]: tiles of the section that are computed
  unsigned count, tiles;    ///< sections of a plane; tiles of each section but the last

  /// Waits for every section.
  template <class BlockGroup>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status await(const BlockGroup& block, const beeline::Context& ctx,
                                                          const Work& work, const Edge& edge, unsigned,
                                                          unsigned side) const {
    const std::uint64_t tag = work.step.tag();
    return await_signals(block, ctx, signals(tag, side), count, tag, edge.peer);
  }

  /// Counts the tile; the last of its section sends the section and its signal.
  template <class BlockGroup>
  BEELINE_HOST_DEVICE void hand_over(const BlockGroup& block, const beeline::Context& ctx, const Work& work,
                                     const Edge& edge, unsigned tile, unsigned side) const {
    const unsigned section = tile / tiles, first_tile = section * tiles;
    const unsigned rest = work.tiling.tiles - first_tile, here = rest < tiles ? rest : tiles;
    if (!apps::is_last(block, &finished[side * max_sections + section], here)) return;
    put_part(block, ctx, work, edge, work.range(first_tile, here),
             signals(work.step.tag() + 1, opposite(side)) + section);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signals(std::uint64_t tag, unsigned side) const {
    return arrived + ((tag % 2) * sides + side) * max_sections;
  }
};

class InKernel final : public OneKernelAnIteration<Sections> {
 public:
  explicit InKernel(Domain& domain)
      : OneKernelAnIteration(domain), arrived_(world(), 2 * sides * max_sections),
        finished_(world(), sides * max_sections) {
    constexpr std::size_t section_bytes = 32768;
    const auto wanted = static_cast<unsigned>(domain.plane_bytes() / section_bytes);
    const unsigned all = tiling().tiles, at_most = std::min(std::clamp(wanted, 1u, max_sections), all);
    const unsigned tiles = (all + at_most - 1) / at_most;
    set_handover({arrived_.data(), finished_.data(), (all + tiles - 1) / tiles, tiles});
  }

 private:
  beeline::SymmetricArray<std::uint64_t> arrived_;
  beeline::SymmetricArray<std::uint32_t> finished_;
};

}  // namespace

MethodInfo in_kernel() {
  return MethodInfo::of<InKernel>(
      {"in_kernel", "the compute kernel's last block on a boundary sends it; blocks wait at their start"});
}

}  // namespace himeno
