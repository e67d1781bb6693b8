// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method device: one kernel for all sweeps, without the CPU. Blocks take chunks of the boundary planes first: they
/// wait for the same chunk of the neighbour's plane, update, and put the chunk with a signal. Then all blocks update
/// the bulk while chunks travel, and synchronise at a grid barrier. A site needs only the site of the halo in its own
/// column, so chunks need not wait for each other.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "method.hpp"

namespace spin_glass {

namespace {

/// What blocks share.
struct Chunks {
  Edge edges[sides];
  Planes bulk;
  std::uint32_t rows, count;  ///< of a chunk, the last one may have fewer; chunks of a plane
  std::uint64_t* arrived;     ///< [sides, count] symmetric: number of the update whose chunk has arrived, over all runs
};

/// Some sweeps.
struct Sweeps {
  std::uint32_t first, count;
  std::uint64_t tag;  ///< number of the update before them
  bool communicate;
};

template <class Grid>
class Sweeper {
 public:
  BEELINE_HOST_DEVICE Sweeper(Grid& grid, const beeline::Context& ctx, const Lattice& lattice, const Chunks& chunks,
                              const Sweeps& sweeps)
      : grid_(grid), ctx_(ctx), lattice_(lattice), chunks_(chunks), sweeps_(sweeps) {}

  /// Runs all sweeps.
  ///   rule_of_sweep  returns the rule of a sweep, given its number
  template <class RuleOf>
  BEELINE_HOST_DEVICE void run(const RuleOf& rule_of_sweep) {
    for (std::uint32_t half = 0; half < 2 * sweeps_.count; ++half) {
      const auto rule = rule_of_sweep(sweeps_.first + half / 2);
      if (!update_boundary(half, rule)) return;
      update_planes(grid_, lattice_, half % 2, chunks_.bulk, rule);
      if (grid_.sync(ctx_) != beeline::Status::ok) return;
    }
    if (!sweeps_.communicate) return;
    for (std::uint32_t item = grid_.block_rank(); item < sides * chunks_.count; item += grid_.blocks())
      if (!await(item / chunks_.count, item % chunks_.count, 2 * sweeps_.count)) return;
  }

 private:
  /// The only plane of a slab is the boundary of both sides.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_one_plane() const { return lattice_.planes == 1; }

  template <class AnyRule>
  [[nodiscard]] BEELINE_HOST_DEVICE bool update_boundary(std::uint32_t half, const AnyRule& rule) const {
    const std::uint32_t items = (has_one_plane() ? 1 : sides) * chunks_.count;
    for (std::uint32_t item = grid_.block_rank(); item < items; item += grid_.blocks())
      if (!update_chunk(half, item / chunks_.count, item % chunks_.count, rule)) return false;
    return true;
  }

  template <class AnyRule>
  [[nodiscard]] BEELINE_HOST_DEVICE bool update_chunk(std::uint32_t half, unsigned own_side, std::uint32_t chunk,
                                                      const AnyRule& rule) const {
    const auto& block = grid_.block();
    for (unsigned side = 0; side < sides; ++side)
      if (sweeps_.communicate && half > 0 && touches(own_side, side) && !await(side, chunk, half)) return false;
    const std::uint32_t first = chunk * chunks_.rows, left = lattice_.y - first;
    const Rows rows{first, left < chunks_.rows ? left : chunks_.rows};
    update_rows(block, lattice_, half % 2, chunks_.edges[own_side].mine, rows, rule);
    block.sync();  // all threads contributed to the chunk
    for (unsigned side = 0; side < sides; ++side)
      if (sweeps_.communicate && touches(own_side, side) && !send(half, side, chunk, rows)) return false;
    return true;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool touches(unsigned own_side, unsigned side) const {
    return side == own_side || has_one_plane();
  }

  /// Returns whether the neighbour's chunk of update `half` of these sweeps, counted from 1 on, has arrived.
  [[nodiscard]] BEELINE_HOST_DEVICE bool await(unsigned side, std::uint32_t chunk, std::uint32_t half) const {
    return beeline::wait(grid_.block(), ctx_, signal(side, chunk), beeline::Compare::greater_equal, sweeps_.tag + half,
                         chunks_.edges[side].peer) == beeline::Status::ok;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool send(std::uint32_t half, unsigned side, std::uint32_t chunk,
                                              const Rows& rows) const {
    const auto& block = grid_.block();
    const Edge& edge = chunks_.edges[side];
    float* const spins = lattice_.spins[half % 2] + rows.first * lattice_.half_x;
    const std::uint32_t count = rows.count * lattice_.half_x;
    float* const to = spins + lattice_.offset(edge.theirs);
    const float* const from = spins + lattice_.offset(edge.mine);
    auto status = beeline::Status::ok;
    for (unsigned component = 0; component + 1 < components && status == beeline::Status::ok; ++component)
      status = beeline::put(block, ctx_, to + component * lattice_.area(), from + component * lattice_.area(), count,
                            edge.peer);
    const std::size_t last = std::size_t{components - 1} * lattice_.area();
    if (status == beeline::Status::ok)
      status = beeline::put_signal(block, ctx_, to + last, from + last, count, signal(opposite(side), chunk),
                                   sweeps_.tag + half + 1, edge.peer);
    return status == beeline::Status::ok;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(unsigned side, std::uint32_t chunk) const {
    return chunks_.arrived + side * chunks_.count + chunk;
  }

  Grid& grid_;
  const beeline::Context& ctx_;
  const Lattice& lattice_;
  const Chunks& chunks_;
  const Sweeps& sweeps_;
};

/// Rules by the numbers of sweeps.
struct AllOverRelaxation {
  [[nodiscard]] BEELINE_HOST_DEVICE OverRelaxation operator()(std::uint32_t) const { return {}; }
};
struct RulesOf {
  Model model;
  [[nodiscard]] BEELINE_HOST_DEVICE Rule operator()(std::uint32_t sweep) const { return rule_of(model, sweep); }
};

struct SweepAgainAndAgain {
  template <class Grid, class RuleOf>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, const Lattice& lattice,
                                      const Chunks& chunks, const RuleOf& rule_of_sweep, const Sweeps& sweeps) const {
    Sweeper<Grid>(grid, ctx, lattice, chunks, sweeps).run(rule_of_sweep);
  }
};

class Device final : public Method {
 public:
  explicit Device(Domain& domain)
      : Method(domain), rows_(rows_of_chunk(world(), domain.lattice())),
        count_((domain.lattice().y + rows_ - 1) / rows_), arrived_(world(), std::size_t{sides} * count_) {}

  void run(int sweeps, bool communicate) override {
    const Sweeps some{domain().take_sweeps(sweeps), static_cast<std::uint32_t>(sweeps), tag_, communicate};
    if (communicate) tag_ += 2 * some.count;
    if (domain().model().heat_bath != 0)
      launch(RulesOf{domain().model()}, some);
    else
      launch(AllOverRelaxation{}, some);
    world().synchronize();
  }

 private:
  template <class RuleOf>
  void launch(const RuleOf& rule_of_sweep, const Sweeps& some) {
    const unsigned blocks =
        domain().blocks<SweepAgainAndAgain, Lattice, Chunks, RuleOf, Sweeps>(domain().size().sites());
    const Chunks chunks{{domain().edge(lower), domain().edge(upper)}, domain().bulk(), rows_, count_, arrived_.data()};
    beeline::launch(world(), {.blocks = blocks, .threads = block_threads, .waits = true}, SweepAgainAndAgain{},
                    domain().lattice(), chunks, rule_of_sweep, some);
  }
  /// With a GPU about four sites for each thread of a block: few signals, and still chunks for many blocks. The same on
  /// all ranks.
  [[nodiscard]] static std::uint32_t rows_of_chunk(const beeline::World& world, const Lattice& lattice) {
    bool gpus = false;
    for (int rank = 0; rank < world.size(); ++rank) gpus = gpus || world.device(rank).is_gpu();
    return gpus ? std::min(lattice.y, std::max(4 * block_threads / lattice.half_x, 1u)) : lattice.y;
  }

  const std::uint32_t rows_, count_;
  beeline::Signals arrived_;
  std::uint64_t tag_ = 0;
};

}  // namespace

MethodInfo device() {
  return MethodInfo::of<Device>(
      {"device", "one kernel for all sweeps: blocks put chunks of the boundary planes, then update the bulk",
       "device/peer/signal"});
}

}  // namespace spin_glass
