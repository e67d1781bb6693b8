// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>

#include "method.hpp"

namespace random_access {

namespace {

struct FillTable {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target) const {
    const Piece range = target.layout.range(ctx.rank);
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size()) target.words[i] = range.first + i;
  }
};

/// Makes the numbers of all ranks, and applies those whose words this rank owns.
struct ApplyOwn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target, Run run) const {
    const bool is_alone = grid.size() == 1;
    for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
      for_each_number(grid, run.of(rank, ctx.size), [&](std::uint64_t number) {
        const std::uint64_t index = target.layout.index_of(number);
        if (target.layout.owner(index) == ctx.rank) apply(target.own(index), number, is_alone);
      });
  }
};

struct ApplyList {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Target target,
                                      const std::uint64_t* numbers, std::uint64_t count) const {
    const bool is_alone = grid.size() == 1;
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size())
      apply(target.own(target.layout.index_of(numbers[i])), numbers[i], is_alone);
  }
};

struct CountErrors {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target,
                                      std::uint64_t* errors) const {
    const Piece range = target.layout.range(ctx.rank);
    std::uint64_t mine = 0;
    for (std::uint64_t i = grid.thread_rank(); i < range.count; i += grid.size())
      if (target.words[i] != range.first + i) ++mine;
    if (mine != 0) beeline::machine::reduce_add(errors, mine);
  }
};

}  // namespace

Table::Table(beeline::World& world, const Layout& layout, unsigned host_blocks)
    : world_(world), host_blocks_(host_blocks), words_(world, layout.range(0).count),
      errors_(world, 1), target_{layout, words_.data()}, check_blocks_(blocks<ApplyOwn, Target, Run>()) {}

void Table::fill() {
  beeline::launch(world_, {.blocks = check_blocks_, .threads = block_threads}, FillTable{}, target_);
  world_.synchronize();
  world_.barrier();
}

std::uint64_t Table::errors(const Run& run) {
  const beeline::LaunchOptions shape{.blocks = check_blocks_, .threads = block_threads};
  world_.stream().fill(errors_.data(), 0, errors_.bytes());
  beeline::launch(world_, shape, ApplyOwn{}, target_, run);
  beeline::launch(world_, shape, CountErrors{}, target_, errors_.data());
  world_.synchronize();
  std::uint64_t mine = 0;
  world_.copy(&mine, errors_.data(), sizeof mine);
  return world_.allreduce(mine);
}

void Table::enqueue_updates(const std::uint64_t* numbers, std::uint64_t count) {
  const auto wanted = static_cast<unsigned>(count / block_threads);
  const unsigned blocks = world_.device().is_gpu() ? std::clamp(wanted, 1u, check_blocks_) : host_blocks_;
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, ApplyList{}, target_, numbers, count);
}

std::vector<std::uint64_t> Table::gather() {
  std::vector<std::uint64_t> all(layout().words());
  world_.barrier();
  for (int rank = 0; rank < world_.size(); ++rank) {
    const Piece range = layout().range(static_cast<std::uint32_t>(rank));
    world_.copy(all.data() + range.first, words_of(rank), range.count * sizeof(std::uint64_t));
  }
  world_.barrier();
  return all;
}

unsigned Table::blocks_of(unsigned resident) const {
  const unsigned mine = world_.device().is_gpu() ? std::clamp(resident, 1u, most_blocks) : host_blocks_;
  return world_.allreduce(mine, beeline::Reduction::minimum);
}

}  // namespace random_access
