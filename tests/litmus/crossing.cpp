// SPDX-License-Identifier: Apache-2.0
// Store buffering and load buffering: two ranks, two words, one store and one load by each.
#include "tests/litmus/rounds.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

struct CrossingArguments {
  std::uint64_t* words;  ///< [groups, cells] stored to by one rank, loaded by the other; round r stores r
  std::uint64_t* seen;   ///< [2, groups, cells] values that this rank loaded, in rounds of either parity
  std::uint64_t* turns;  ///< [ranks, groups]
  Outcomes* outcomes;
  std::uint64_t rounds;
  std::uint32_t groups, cells;
  Crossing crossing;
  Between between;
  Home home;
};

/// One thread's part of a round.
class Crossroads {
 public:
  BEELINE_HOST_DEVICE Crossroads(const Context& ctx, const CrossingArguments& a, std::uint32_t index,
                                 std::uint64_t round)
      : ctx_(ctx), a_(a), round_(round), first_(std::size_t{index} * a.cells),
        seen_(a.seen + ((round & 1u) * a.groups + index) * std::size_t{a.cells}) {}

  BEELINE_HOST_DEVICE void access(std::uint32_t cell, bool stores) const {
    std::uint64_t* word = a_.words + first_ + cell;
    const std::uint32_t peer = 1 - ctx_.rank;
    if (stores)
      put_value(ctx_, word, round_, a_.home == Home::loader ? peer : ctx_.rank);
    else
      seen_[cell] = detail::load_signal(a_.home == Home::loader ? word : ctx_.at(word, peer), Order::relaxed);
  }

  /// Makes both accesses to each cell, in the order of the test.
  BEELINE_HOST_DEVICE void cross() const {
    const bool stores_first = a_.crossing == Crossing::store_then_load;
    for (std::uint32_t cell = 0; cell < a_.cells; ++cell) {
      access(cell, stores_first);
      if (a_.between == Between::fence) fence();
      access(cell, !stores_first);
    }
  }

  BEELINE_HOST_DEVICE void cross_half(bool stores) const {
    for (std::uint32_t cell = 0; cell < a_.cells; ++cell) access(cell, stores);
  }

  /// Counts the outcomes of both ranks after they have met.
  BEELINE_HOST_DEVICE void count(Outcomes& mine) const {
    const std::uint64_t* theirs = ctx_.at(seen_, 1 - ctx_.rank);
    for (std::uint32_t cell = 0; cell < a_.cells; ++cell) {
      const int news = (seen_[cell] >= round_ ? 1 : 0) + (theirs[cell] >= round_ ? 1 : 0);
      const int forbidden = a_.crossing == Crossing::store_then_load ? 0 : 2;
      ++mine.instances;
      if (news == forbidden) ++mine.forbidden;
      if (news == 2 - forbidden) ++mine.overlapped;
    }
  }

 private:
  const Context& ctx_;
  const CrossingArguments& a_;
  std::uint64_t round_;
  std::size_t first_;
  std::uint64_t* seen_;
};

struct CrossingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CrossingArguments a) const {
    const MeetingPlace place{a.turns, a.groups, grid.thread_rank()};
    const bool reversed = a.between == Between::reversed, stores_first = a.crossing == Crossing::store_then_load;
    Outcomes mine{};
    std::uint64_t turn = 0;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      const Crossroads crossroads(ctx, a, grid.thread_rank(), round);
      if (reversed) {
        crossroads.cross_half(!stores_first);
        if (meet(Thread{}, ctx, place, ++turn) != Status::ok) return;
        crossroads.cross_half(stores_first);
      } else {
        crossroads.cross();
      }
      if (meet(Thread{}, ctx, place, ++turn) != Status::ok) return;
      if (ctx.rank == 0) crossroads.count(mine);
    }
    add_outcomes(a.outcomes, mine);
  }
};

}  // namespace

Outcomes cross(World& world, Crossing crossing, Between between, Home home, std::uint64_t instances) {
  const Shape shape = shape_of_threads(world);
  const SymmetricArray<std::uint64_t> words(world, shape.all_cells()), seen(world, 2 * shape.all_cells()),
      turns(world, 2 * std::size_t{shape.groups});
  return launch_and_count(world, shape, CrossingKernel{},
                          CrossingArguments{words.data(), seen.data(), turns.data(), nullptr, shape.rounds(instances),
                                            shape.groups, shape.cells, crossing, between, home});
}

}  // namespace beeline_test
