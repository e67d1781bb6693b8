// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method atomics: every thread applies its numbers to their words by remote atomics, without a look-ahead. Method bare
/// is the same loop without the library: the addresses are computed from the distance of the ranks' tables.

#include "beeline/device/atomic.hpp"
#include "beeline/device/put_get.hpp"
#include "method.hpp"

namespace random_access {

namespace {

/// By the library's call.
struct ByLibrary {
  BEELINE_HOST_DEVICE void operator()(const beeline::Context& ctx, const Target& target, std::uint64_t index,
                                      std::uint64_t number) const {
    beeline::atomic_xor(ctx, target.own(index), number, target.layout.owner(index));
  }
  template <class Block>
  BEELINE_HOST_DEVICE void end(const Block& block, const beeline::Context& ctx) const {
    static_cast<void>(beeline::quiet(block, ctx));  // a failure is recorded: the host's synchronize reports it
  }
};

/// By the hardware's instruction.
struct ByHand {
  std::uint64_t* first;  ///< rank 0's table; the tables of other ranks follow at distances of `stride` words
  std::int64_t stride;

  BEELINE_HOST_DEVICE void operator()(const beeline::Context&, const Target& target, std::uint64_t index,
                                      std::uint64_t number) const {
    const std::int64_t before = target.layout.owner(index) * stride;
    beeline::machine::reduce_xor(first + before + target.layout.position(index), number);
  }
  template <class Block>
  BEELINE_HOST_DEVICE void end(const Block&, const beeline::Context&) const {}
};

template <class Update>
struct UpdateWords {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target, Piece piece,
                                      Update update) const {
    for_each_number(grid, piece,
                    [&](std::uint64_t number) { update(ctx, target, target.layout.index_of(number), number); });
    update.end(grid.block(), ctx);
  }
};

template <class Update>
class WordByWord : public Method {
 public:
  WordByWord(Table& table, const Update& update)
      : Method(table), update_(update), blocks_(table.blocks<UpdateWords<Update>, Target, Piece, Update>()) {}

  void run(const Run& run) override {
    const auto rank = static_cast<std::uint32_t>(world().rank());
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, UpdateWords<Update>{},
                    table().target(), run.of(rank, table().layout().ranks), update_);
    world().synchronize();
  }

 private:
  const Update update_;
  const unsigned blocks_;
};

class Atomics final : public WordByWord<ByLibrary> {
 public:
  explicit Atomics(Table& table) : WordByWord(table, {}) {}
};

class Bare final : public WordByWord<ByHand> {
 public:
  explicit Bare(Table& table) : WordByWord(table, distances(table)) {}

 private:
  static ByHand distances(const Table& table) {
    std::uint64_t* const first = table.words_of(0);
    const int ranks = table.world().size();
    const std::int64_t stride = ranks > 1 ? table.words_of(1) - first : 0;
    for (int rank = 0; rank < ranks; ++rank)
      beeline::require(table.words_of(rank) == first + rank * stride, beeline::Status::internal,
                       "the ranks' tables are not evenly spaced");
    return {first, stride};
  }
};

}  // namespace

MethodInfo atomics() {
  return MethodInfo::of<Atomics>(
      {"atomics", "every thread changes the words of any rank by remote atomics", "device/peer/signal"});
}

MethodInfo bare() { return MethodInfo::of<Bare>({"bare", "the same loop without the library", {}, why_no_stores}); }

}  // namespace random_access
