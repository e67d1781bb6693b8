// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method device: one kernel for all iterations, without the CPU. Blocks take segments of the outermost rows first:
/// they wait for that segment of the neighbour's row, compute, and put the result into its halo with a signal of its
/// own. Then all compute the other rows, while segments travel, and meet at a grid barrier. A point needs the one point
/// of the halo that lies in its own column, so segments of a row need not wait for each other. Source: seed 003,
/// intra-kernel networking.

#include "beeline/device/put_get.hpp"
#include "method.hpp"
#include "sweep.hpp"

namespace jacobi {

namespace {

/// What blocks share out in each iteration.
struct Shares {
  Piece edge[sides], interior;
  int segment_quads;
  unsigned segments;       ///< of a row
  std::uint64_t* arrived;  ///< [sides][segments], symmetric: tag of the field whose part of the halo is here
};

/// One segment of an outermost row.
template <class BlockGroup>
struct Segment {
  const BlockGroup& block;
  const beeline::Context& ctx;
  const Fields& f;
  const Edges& edges;
  const Shares& shares;
  Piece piece;
  unsigned number;

  /// Waits for what it reads of the halos, computes it, and sends it on.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status advance(const Step& step) const {
    for (unsigned side = 0; side < sides; ++side)
      if (step.needs_halos() && touches(side))
        if (const beeline::Status status = beeline::wait(block, ctx, signal(side), beeline::Compare::greater_equal,
                                                         step.tag(), edges.side[side].peer);
            status != beeline::Status::ok)
          return status;
    update(block.thread_rank(), block.size(), f, piece, step.iteration);
    block.sync();  // the segment is the work of all threads
    for (unsigned side = 0; side < sides; ++side)
      if (step.communicate && touches(side)) send(side, step);
    return beeline::Status::ok;
  }

 private:
  /// Whether it is part of the row that `side` exchanges: an only row is that of both sides.
  [[nodiscard]] BEELINE_HOST_DEVICE bool touches(unsigned side) const {
    return edges.side[side].open() && edges.side[side].mine == piece.first_row;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(unsigned side) const {
    return shares.arrived + side * shares.segments + number;
  }
  BEELINE_HOST_DEVICE void send(unsigned side, const Step& step) const {
    const Edge& edge = edges.side[side];
    float* field = f.before(step.iteration + 1) + piece.first_quad * quad_points;
    beeline::put_signal(block, ctx, field + edge.theirs, field + edge.mine * f.row,
                        static_cast<std::size_t>(piece.last_quad - piece.first_quad) * quad_points,
                        signal(opposite(side)), step.tag() + 1, edge.peer);
  }
};

struct Iterate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Fields f, Edges edges, Shares shares,
                                      Step step, int iterations) const {
    for (int done = 0; done < iterations; ++done, ++step.iteration) {
      for (unsigned item = grid.block_rank(); item < sides * shares.segments; item += grid.blocks()) {
        const unsigned side = item / shares.segments, number = item - side * shares.segments;
        const Piece piece = segment_of(shares, side, number);
        if (piece.empty()) continue;
        const Segment<Block<Grid>> segment{grid.block(), ctx, f, edges, shares, piece, number};
        if (segment.advance(step) != beeline::Status::ok) return;
      }
      update(grid.thread_rank(), grid.size(), f, shares.interior, step.iteration);
      if (grid.sync(ctx) != beeline::Status::ok) return;
    }
  }

 private:
  template <class Grid>
  using Block = std::remove_cvref_t<decltype(std::declval<Grid&>().block())>;

  [[nodiscard]] BEELINE_HOST_DEVICE static Piece segment_of(const Shares& shares, unsigned side, unsigned number) {
    Piece piece = side == lower ? shares.edge[lower] : shares.edge[upper];
    piece.first_quad = static_cast<int>(number) * shares.segment_quads;
    const int end = piece.first_quad + shares.segment_quads;
    if (end < piece.last_quad) piece.last_quad = end;
    return piece;
  }
};

class Device final : public Method {
 public:
  explicit Device(Domain& domain)
      : Method(domain), segments_(segments_of(domain)), arrived_(world(), std::size_t{sides} * segments_),
        blocks_(domain.blocks<Iterate, Fields, Edges, Shares, Step, int>(domain.all())), shares_{{domain.edge(lower),
                                                                                                  domain.edge(upper)},
                                                                                                 domain.interior(),
                                                                                                 domain.segment_quads(),
                                                                                                 segments_,
                                                                                                 arrived_.data()} {}

  void run(int iterations, bool communicate) override {
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, Iterate{}, domain().fields(),
                    domain().edges(), shares_, domain().take_steps(iterations, communicate), iterations);
    world().synchronize();
  }

 private:
  static unsigned segments_of(const Domain& domain) {
    const int quads = domain.fields().quads, of_segment = domain.segment_quads();
    return static_cast<unsigned>((quads + of_segment - 1) / of_segment);
  }

  unsigned segments_;
  beeline::Signals arrived_;
  unsigned blocks_;
  Shares shares_;
};

}  // namespace

MethodInfo device() {
  return MethodInfo::of<Device>(
      {"device", "one kernel for all iterations: blocks put segments of the outermost rows, and wait for them",
       "device/peer/signal"});
}

}  // namespace jacobi
