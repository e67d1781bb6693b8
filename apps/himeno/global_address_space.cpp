// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 5: one address space. Each boundary cell is stored twice when it is computed: here, and directly into the
/// neighbour's halo. The only communication call is one barrier per iteration. The pressure's two buffers double the
/// halos too: otherwise the neighbour could still be reading the value that a store replaces.
/// Source: seed 000 section 6.9.1, listing 6.7 and figure 6.19.

#include "beeline/device/barrier.hpp"
#include "method.hpp"

namespace himeno {

namespace {

/// Stores points on this rank; also stores points of the outermost planes into the neighbours' halos.
struct StoreBoth {
  float* to;
  float* beyond[sides];        ///< shifted: the outermost plane's offsets address the peer's halo; nullptr: no peer
  std::ptrdiff_t lower_end;    ///< offset behind the lower outermost plane
  std::ptrdiff_t upper_begin;  ///< offset of the upper outermost plane

  BEELINE_HOST_DEVICE StoreBoth(const beeline::Context& ctx, const Edges& edges, float* buffer)
      : to(buffer), beyond{nullptr, nullptr}, lower_end(edges.side[lower].mine + edges.plane),
        upper_begin(edges.side[upper].mine) {
    for (unsigned side = 0; side < sides; ++side) {
      const Edge& edge = edges.side[side];
      if (edge.open()) beyond[side] = ctx.at(buffer + edge.theirs, edge.peer) - edge.mine;
    }
  }
  BEELINE_HOST_DEVICE void operator()(std::ptrdiff_t n, const Vector& updated) const {
    *reinterpret_cast<Vector*>(to + n) = updated;
    if (n < lower_end && beyond[lower] != nullptr) *reinterpret_cast<Vector*>(beyond[lower] + n) = updated;
    if (n >= upper_begin && beyond[upper] != nullptr) *reinterpret_cast<Vector*>(beyond[upper] + n) = updated;
  }
};

struct UpdateEverywhere {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Fields f, Edges edges,
                                      Tiling tiling, Sums sums, int iteration) const {
    const StoreBoth store(ctx, edges, f.pressure(iteration + 1));
    double gosa = 0;
    for (unsigned item = grid.block_rank(); item < tiling.items(); item += grid.blocks())
      gosa += update_tile(grid.block(), f, tiling, f.pressure(iteration), item % tiling.tiles,
                          planes_of_item(tiling, {1, f.planes + 1}, item), store);
    store_block_gosa(grid, sums, 0, gosa);
  }
};

/// Ends an iteration: then everything that any rank stored is visible to all, including the ranks' sums.
struct EndIteration {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Sums sums, Mailbox mailbox,
                                      std::uint64_t tag, unsigned blocks) const {
    const auto& block = grid.block();
    const double total = total_of_blocks(block, sums.threads, sums, 0, 1, blocks);
    if (block.thread_rank() == 0) deliver(ctx, mailbox, tag, total);
    if (beeline::barrier(block, ctx, beeline::Order::memory) == beeline::Status::ok)
      static_cast<void>(collect(block, ctx, mailbox, tag));
  }
};

class GlobalAddressSpace final : public Method {
 public:
  explicit GlobalAddressSpace(Domain& domain)
      : Method(domain), window_(world()), shape_(domain.shape<UpdateEverywhere, Fields, Edges, Tiling, Sums, int>()),
        tiling_(domain.tiling(shape_.blocks, domain.slab().planes)), closed_(domain.edges()) {
    for (Edge& edge : closed_.side) edge.peer = beeline::no_peer;
  }

  void iterate(int iterations, bool communicate) override {
    const std::uint64_t first_tag = domain().take_tags(iterations);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads}, UpdateEverywhere{},
                      domain().fields(), communicate ? domain().edges() : closed_, tiling_, domain().sums(), iteration);
      if (communicate)
        beeline::launch(world(), {.waits = true}, EndIteration{}, domain().sums(), domain().mailbox(),
                        first_tag + static_cast<std::uint64_t>(iteration), shape_.blocks);
      window_.advance();
    }
    finish();
  }

 private:
  LaunchWindow window_;
  Shape shape_;
  Tiling tiling_;
  Edges closed_;  ///< edges that treat both sides as the grid's boundary
};

}  // namespace

MethodInfo global_address_space() {
  return MethodInfo::of<GlobalAddressSpace>(
      {"global_address_space",
       "boundary cells are stored into the neighbour while they are computed; a barrier an iteration"});
}

}  // namespace himeno
