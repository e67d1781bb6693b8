// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table in the ranks' symmetric memory, and the common parts of all methods' kernels.

#include <cstdint>
#include <vector>

#include "beeline/device/impl/machine.hpp"
#include "beeline/host/launch.hpp"
#include "problem.hpp"
#include "stream.hpp"

namespace random_access {

/// Threads of a block of every launch on a GPU.
inline constexpr unsigned block_threads = 512;

/// The table as kernels see it.
struct Target {
  Layout layout;
  std::uint64_t* words;  ///< this rank's range; symmetric

  /// This rank's word of an index that it owns.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* own(std::uint64_t index) const {
    return words + layout.position(index);
  }
};

/// Applies an update to a word of this rank's memory. Blocks and threads of a rank may change the same word, so that
/// they do it by atomics. A single thread needs none.
BEELINE_HOST_DEVICE inline void apply(std::uint64_t* word, std::uint64_t number, bool is_alone) {
  if (is_alone)
    *word ^= number;
  else
    beeline::machine::reduce_xor(word, number);
}

/// Numbers whose words this rank owns.
struct Numbers {
  const std::uint64_t* first;
  std::uint64_t count;
};

/// Applies numbers, by all threads of `group`. A worker of tasks on a GPU, a warp, has many for each thread, and loads
/// some before it applies the first of them: no load passes an atomic, so that one after the other would wait for each
/// load.
template <class Group>
BEELINE_HOST_DEVICE void apply_numbers(const Group& group, const Target& target, const Numbers& arrived,
                                       bool is_alone) {
  constexpr std::uint64_t at_once = BEELINE_ON_GPU ? 8 : 1;
  const Target own = target;  // a copy: the compiler assumes that updates may change the original
  const std::uint64_t threads = group.size(), stride = at_once * threads;
  std::uint64_t first = group.thread_rank();
  for (; first + stride - threads < arrived.count; first += stride) {
    std::uint64_t some[at_once];
    for (std::uint64_t i = 0; i < at_once; ++i) some[i] = arrived.first[first + i * threads];
    for (const std::uint64_t number : some) apply(own.own(own.layout.index_of(number)), number, is_alone);
  }
  for (; first < arrived.count; first += threads)
    apply(own.own(own.layout.index_of(arrived.first[first])), arrived.first[first], is_alone);
}

/// Calls `use(number)` for the numbers of this thread's part of `piece`, which all threads of the grid share.
template <class Grid, class Use>
BEELINE_HOST_DEVICE void for_each_number(const Grid& grid, const Piece& piece, const Use& use) {
  const Piece mine = part_of(piece.count, grid.thread_rank(), grid.size());
  std::uint64_t number = starts(piece.first + mine.first);
  for (std::uint64_t i = 0; i < mine.count; ++i) {
    number = next_number(number);
    use(number);
  }
}

/// A rank's range of the table. Constructor and destructor are collective.
class Table {
 public:
  ///   host_blocks  blocks of launches on host ranks; tests take several
  Table(beeline::World& world, const Layout& layout, unsigned host_blocks = 1);

  /// Collective. Sets T[i] = i.
  void fill();
  /// Collective. Applies the updates of `run` again, each rank those of its own words, without communication. Returns
  /// how many words of the whole table are then not T[i] = i; every rank returns the same.
  [[nodiscard]] std::uint64_t errors(const Run& run);
  /// Enqueues on the default stream the updates by `count` numbers whose words this rank owns.
  ///   numbers  [count] in the memory of the rank's device
  void enqueue_updates(const std::uint64_t* numbers, std::uint64_t count);
  /// Collective. The whole table, on every rank. For tests: by copies, which reach ranks of the same node.
  [[nodiscard]] std::vector<std::uint64_t> gather();

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Layout& layout() const { return target_.layout; }
  [[nodiscard]] const Target& target() const { return target_; }
  /// The words of another rank, for programs that compute addresses themselves.
  [[nodiscard]] std::uint64_t* words_of(int rank) const { return words_.at(rank); }
  /// Collective. Blocks of a launch of `Kernel` on this rank, the same on all ranks; all blocks may wait.
  template <class Kernel, class... Args>
  [[nodiscard]] unsigned blocks() const {
    return blocks_of(beeline::resident_blocks<Kernel, Args...>(world_, block_threads));
  }

 private:
  [[nodiscard]] unsigned blocks_of(unsigned resident) const;

  beeline::World& world_;
  unsigned host_blocks_;
  beeline::SymmetricArray<std::uint64_t> words_, errors_;
  Target target_;
  unsigned check_blocks_;
};

}  // namespace random_access
