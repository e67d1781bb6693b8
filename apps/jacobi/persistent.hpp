// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The methods that are one kernel for all iterations, without the CPU. Blocks take segments of the outermost rows
/// first: they wait for the same segment of the neighbour's row, compute, and send the result into the neighbour's halo
/// with a signal for each segment. Then all blocks compute the other rows, while segments travel, and synchronise at a
/// grid barrier. A point needs only the point of the halo in its own column, so segments of a row need not wait for
/// each other. The methods differ in their senders.

#include <algorithm>
#include <limits>
#include <optional>

#include "beeline/device/signal.hpp"
#include "method.hpp"
#include "sweep.hpp"

namespace jacobi {

/// The work that blocks share in each iteration.
struct Shares {
  Piece edge[sides], interior;
  int segment_quads;
  unsigned segments;       ///< number of segments of a row
  std::uint64_t* arrived;  ///< [sides][segments], symmetric: tag of the field whose segment is in the halo
};

/// A message to a neighbour: `count` elements, followed by a signal.
struct Message {
  float* destination;
  const float* source;
  std::size_t count;
  std::uint64_t* signal;
  std::uint64_t tag;
  std::uint32_t peer;
};

/// Segment `number` of the row at `side`; empty if there is no such segment.
[[nodiscard]] BEELINE_HOST_DEVICE inline Piece segment_of(const Shares& shares, unsigned side, unsigned number) {
  Piece piece = side == lower ? shares.edge[lower] : shares.edge[upper];
  piece.first_quad = static_cast<int>(number) * shares.segment_quads;
  const int end = piece.first_quad + shares.segment_quads;
  if (end < piece.last_quad) piece.last_quad = end;
  return piece;
}

/// Whether a segment is part of the row that `side` exchanges; the only row of a slab belongs to both sides.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool touches(const Edges& edges, unsigned side, const Piece& piece) {
  return edges.side[side].open() && edges.side[side].mine == piece.first_row;
}

/// The message of an iteration with a segment across `side`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Message message_of(const Fields& f, const Edge& edge, const Shares& shares,
                                                            const Piece& piece, const Step& step, unsigned side,
                                                            unsigned number) {
  float* field = f.before(step.iteration + 1) + piece.first_quad * quad_points;
  return {field + edge.theirs,
          field + edge.mine * f.row,
          static_cast<std::size_t>(piece.last_quad - piece.first_quad) * quad_points,
          shares.arrived + opposite(side) * shares.segments + number,
          step.tag() + 1,
          edge.peer};
}

/// One segment of an outermost row.
template <class Grid, class Sender>
struct Segment {
  const Grid& grid;
  const beeline::Context& ctx;
  const Sender& sender;
  const Fields& f;
  const Edges& edges;
  const Shares& shares;
  Piece piece;
  unsigned number;

  /// Waits for the parts of the halos that the segment reads, computes the segment, and sends it.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status advance(const Step& step) const {
    const auto& block = grid.block();
    auto status = beeline::Status::ok;
    for (unsigned side = 0; side < sides; ++side)
      if (status == beeline::Status::ok && step.needs_halos() && touches(side))
        status =
            beeline::wait(block, ctx, signal(side), beeline::Compare::greater_equal, step.tag(), edges.side[side].peer);
    if (status != beeline::Status::ok) return status;
    update(block.thread_rank(), block.size(), f, piece, step.iteration);
    block.sync();  // all threads contributed to the segment
    for (unsigned side = 0; side < sides; ++side)
      if (status == beeline::Status::ok && step.communicate && touches(side))
        status = sender.send(grid, ctx, message(side, step));
    return status;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE bool touches(unsigned side) const { return jacobi::touches(edges, side, piece); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(unsigned side) const {
    return shares.arrived + side * shares.segments + number;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Message message(unsigned side, const Step& step) const {
    return message_of(f, edges.side[side], shares, piece, step, side, number);
  }
};

/// The kernel. `Sender`, a small structure, has
///   static constexpr int segment_quads   quads of a segment on a GPU
///   Status send(grid, ctx, message)      every thread of a block calls it. The source is overwritten two iterations
///   later, after a signal that the neighbour sent when it had received the message
///   Status end(grid, ctx)                called after the last iteration by every thread of the grid
template <class Sender>
struct Iterate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Fields f, Edges edges, Shares shares,
                                      Sender sender, Step step, int iterations) const {
    for (int done = 0; done < iterations; ++done, ++step.iteration) {
      for (unsigned item = grid.block_rank(); item < sides * shares.segments; item += grid.blocks()) {
        const unsigned side = item / shares.segments, number = item - side * shares.segments;
        const Piece piece = segment_of(shares, side, number);
        if (piece.empty()) continue;
        const Segment<Grid, Sender> segment{grid, ctx, sender, f, edges, shares, piece, number};
        if (segment.advance(step) != beeline::Status::ok) return;
      }
      update(grid.thread_rank(), grid.size(), f, shares.interior, step.iteration);
      if (grid.sync(ctx) != beeline::Status::ok) return;
    }
    static_cast<void>(sender.end(grid, ctx));  // a failure is recorded: the host's synchronize reports it
  }
};

/// The host side of these methods. Constructor and destructor are collective.
template <class Sender>
class Persistent : public Method {
 public:
  explicit Persistent(Domain& domain)
      : Method(domain), segment_quads_(domain.segment_quads(Sender::segment_quads)),
        segments_(static_cast<unsigned>((domain.fields().quads + segment_quads_ - 1) / segment_quads_)),
        arrived_(world(), std::size_t{sides} * segments_) {}

  void run(int iterations, bool communicate) override {
    const int most = iterations_at_once();
    std::optional<Step> ready;
    for (int left = iterations; left > 0;) {
      const int now = std::min(left, most);
      start(ready ? *ready : prepared(now, communicate), now);
      left -= now;
      ready.reset();
      if (left > 0 && prepares_ahead()) ready = prepared(std::min(left, most), communicate);
      world().synchronize();
    }
  }

 protected:
  [[nodiscard]] unsigned segments() const { return segments_; }
  [[nodiscard]] std::uint64_t* arrived() const { return arrived_.data(); }

 private:
  [[nodiscard]] virtual Sender sender() const = 0;
  /// Largest number of iterations in one launch.
  [[nodiscard]] virtual int iterations_at_once() const { return std::numeric_limits<int>::max(); }
  /// `prepare` is the host's work before the kernel of the next `iterations` iterations starts; `prepares_ahead` tells
  /// whether it may run while the previous kernel runs.
  virtual void prepare(const Shares& /*shares*/, Step /*step*/, int /*iterations*/) {}
  [[nodiscard]] virtual bool prepares_ahead() const { return false; }

  [[nodiscard]] Shares shares() const {
    return {
        {domain().edge(lower), domain().edge(upper)}, domain().interior(), segment_quads_, segments_, arrived_.data()};
  }
  [[nodiscard]] Step prepared(int iterations, bool communicate) {
    const Step step = domain().take_steps(iterations, communicate);
    prepare(shares(), step, iterations);
    return step;
  }
  void start(const Step& step, int iterations) {
    // An engine of the device has booked its share before this point.
    const unsigned blocks = domain().blocks<Iterate<Sender>, Fields, Edges, Shares, Sender, Step, int>(domain().all());
    beeline::launch(world(), {.blocks = blocks, .threads = block_threads, .waits = true}, Iterate<Sender>{},
                    domain().fields(), domain().edges(), shares(), sender(), step, iterations);
  }

  int segment_quads_;
  unsigned segments_;
  beeline::Signals arrived_;
};

}  // namespace jacobi
