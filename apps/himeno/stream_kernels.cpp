// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 3: communication kernels between the compute kernels of one stream. A communication kernel between two halves
/// sends the planes of the half just computed, and waits for the planes that the next half reads. Stream order does the
/// rest, so no compute kernel communicates or waits. There are four kernels per iteration.
/// Source: seed 000 section 5.8.2, listing 5.7 and figure 5.22.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "common/last_block.hpp"
#include "halves.hpp"
#include "method.hpp"

namespace himeno {

namespace {

/// Signals and counters of the communication kernels.
struct Post {
  std::uint64_t* arrived;   ///< [sides], symmetric: tag of the field whose plane is in the halo
  std::uint32_t* finished;  ///< [sides]: blocks whose share has been put
};

/// The work of a communication kernel. In a set of sides, bit 1 << side stands for `side`.
struct Errand {
  unsigned send, await;
  std::uint64_t await_tag;
  bool sum;             ///< also exchange gosa of `step`
  Step step;            ///< the step whose results are sent
  unsigned sum_blocks;  ///< blocks of each half that stored sums
};

struct Communicate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Fields f, Edges edges, Post post,
                                      Sums sums, Mailbox mailbox, Errand errand) const {
    const auto& block = grid.block();
    for (unsigned side = 0; side < sides; ++side)
      if ((errand.send >> side & 1u) != 0)
        send(grid, ctx, f.pressure(errand.step.iteration + 1), edges, side, post, errand.step.tag() + 1);
    if (grid.block_rank() == 0)
      for (unsigned side = 0; side < sides; ++side)
        if ((errand.await >> side & 1u) != 0 &&
            beeline::wait(block, ctx, &post.arrived[side], beeline::Compare::greater_equal, errand.await_tag,
                          edges.side[side].peer) != beeline::Status::ok)
          return;  // recorded: the host's synchronize reports it
    if (errand.sum && grid.block_rank() == grid.blocks() - 1) {
      const double total = total_of_blocks(block, sums.threads, sums, 0, 2, errand.sum_blocks);
      static_cast<void>(exchange_gosa(block, ctx, mailbox, errand.step, total));
    }
  }

 private:
  /// Every block puts its share of the plane; the last block, found by the counter, sets the signal.
  template <class Grid>
  BEELINE_HOST_DEVICE static void send(const Grid& grid, const beeline::Context& ctx, float* p, const Edges& edges,
                                       unsigned side, const Post& post, std::uint64_t tag) {
    const auto& block = grid.block();
    const Edge& edge = edges.side[side];
    const std::ptrdiff_t plane = edges.plane,
                         share = (plane / vector_cells + grid.blocks() - 1) / grid.blocks() * vector_cells;
    const std::ptrdiff_t first = share * grid.block_rank(), last = first + share < plane ? first + share : plane;
    if (first < last)
      beeline::put(block, ctx, p + edge.theirs + first, p + edge.mine + first, static_cast<std::size_t>(last - first),
                   edge.peer);
    if (apps::is_last(block, &post.finished[side], grid.blocks()))
      beeline::signal(block, ctx, &post.arrived[opposite(side)], tag, edge.peer);
  }
};

/// Collects the last iteration's gosa.
struct CollectLast {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Mailbox mailbox,
                                      std::uint64_t tag) const {
    static_cast<void>(collect(grid.block(), ctx, mailbox, tag));
  }
};

class StreamKernels final : public Method {
 public:
  explicit StreamKernels(Domain& domain)
      : Method(domain), halves_(domain), arrived_(world(), sides), finished_(world(), sides), window_(world()),
        shape_(domain.shape<Communicate, Fields, Edges, Post, Sums, Mailbox, Errand>()) {
    // A block stores about 20 GB/s to a peer: use enough blocks that a plane takes one or two microseconds.
    constexpr std::size_t bytes_of_a_block = 16384;
    const auto wanted = static_cast<unsigned>(domain.plane_bytes() / bytes_of_a_block);
    shape_.blocks = std::min(shape_.blocks, std::clamp(wanted, 2u, 16u));
  }

  void iterate(int iterations, bool communicate) override {
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      halves_.launch(0, step.iteration);
      if (communicate) launch(between_halves(step));
      halves_.launch(1, step.iteration);
      if (communicate) launch(between_iterations(step, iterations));
      window_.advance();
    }
    if (communicate) beeline::launch(world(), {.waits = true}, CollectLast{}, domain().mailbox(), step.tag() - 1);
    finish();
  }

 private:
  [[nodiscard]] unsigned touched_by(unsigned half) const {
    return (halves_.touches(half, lower) ? 1u << lower : 0u) | (halves_.touches(half, upper) ? 1u << upper : 0u);
  }
  [[nodiscard]] Errand between_halves(const Step& step) const {
    return {touched_by(0), step.needs_halos() ? touched_by(1) : 0u, step.tag(), false, step, 0};
  }
  [[nodiscard]] Errand between_iterations(const Step& step, int iterations) const {
    const bool more = step.iteration + 1 < iterations;
    return {touched_by(1), more ? touched_by(0) : 0u, step.tag() + 1, true, step, halves_.blocks()};
  }
  void launch(const Errand& errand) const {
    if (errand.send == 0 && errand.await == 0 && !errand.sum) return;
    beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads, .waits = true}, Communicate{},
                    domain().fields(), domain().edges(), Post{arrived_.data(), finished_.data()}, domain().sums(),
                    domain().mailbox(), errand);
  }

  Halves halves_;
  beeline::SymmetricArray<std::uint64_t> arrived_;
  beeline::SymmetricArray<std::uint32_t> finished_;
  LaunchWindow window_;
  Shape shape_;
};

}  // namespace

MethodInfo stream_kernels() {
  return MethodInfo::of<StreamKernels>(
      {"stream_kernels", "communication kernels between the compute kernels of a stream"});
}

}  // namespace himeno
