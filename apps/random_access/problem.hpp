// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a table of 64-bit words shared among ranks, and the ranks' parts of its updates.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/macros.hpp"
#include "common/memory_budget.hpp"

namespace random_access {

/// Updates for each word of the table, and numbers that a block makes before it sends them.
inline constexpr std::uint64_t updates_per_word = 4, look_ahead = 1024;
/// Words of a buffer for up to `look_ahead` numbers, and for what a store of eight numbers overwrites behind the last.
inline constexpr std::uint64_t box_words = look_ahead + 8;
/// Largest number of ranks whose blocks have buffers for each other.
inline constexpr int most_exchanging_ranks = 64;

/// A part of a sequence.
struct Piece {
  std::uint64_t first, count;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Part `part` of `parts` of a sequence: contiguous; parts differ by at most one element. `whole` * `parts` < 2^64.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr Piece part_of(std::uint64_t whole, std::uint64_t part,
                                                          std::uint64_t parts) {
  const std::uint64_t first = (whole * part + parts - 1) / parts;
  return {first, (whole * (part + 1) + parts - 1) / parts - first};
}

/// The table, of 2^bits words, and its ranges on the ranks: rank r has part r of the indices, for any number of ranks.
/// An index is the low bits of a number, as in HPCC.
struct Layout {
  unsigned bits;
  std::uint32_t ranks;
  int rank_shift;  ///< log2 of `ranks`; -1 if it is no power of two

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t words() const { return std::uint64_t{1} << bits; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t index_of(std::uint64_t number) const {
    return number & (words() - 1);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner(std::uint64_t index) const {
    return static_cast<std::uint32_t>(index * ranks >> bits);
  }
  /// Position of a word in the owner's range.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t position(std::uint64_t index) const {
    const std::uint64_t scaled = index_of(index * ranks);  // `ranks` times the distance from the range's exact begin
    return rank_shift >= 0 ? scaled >> rank_shift : scaled / ranks;
  }
  /// The indices of a rank's words.
  [[nodiscard]] BEELINE_HOST_DEVICE Piece range(std::uint32_t rank) const { return part_of(words(), rank, ranks); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// The layout of a table of 2^bits words.
[[nodiscard]] Layout layout_of(unsigned bits, int ranks);

/// Parses a list of sizes, such as 1K,64M: words of the whole table, powers of two from 1K to 1024G. With `weak` they
/// are words for each rank, and a table is the largest power of two that has at most as many. Throws invalid_argument,
/// naming what is wrong, for other sizes.
[[nodiscard]] std::vector<Layout> parse_words(const std::string& text, int ranks, bool weak);

/// The updates of one run: each rank makes the first numbers of its part of the stream, 1 of `divisor` of them.
struct Run {
  std::uint64_t updates;  ///< of all ranks, if the divisor is 1
  std::uint64_t divisor;

  [[nodiscard]] BEELINE_HOST_DEVICE Piece of(std::uint32_t rank, std::uint32_t ranks) const {
    const Piece all = part_of(updates, rank, ranks);
    return {all.first, (all.count + divisor - 1) / divisor};
  }
};
[[nodiscard]] inline Run run_of(const Layout& layout, std::uint64_t divisor = 1) {
  return {updates_per_word * layout.words(), divisor};
}
/// Updates of all ranks in a run.
[[nodiscard]] std::uint64_t updates_of(const Run& run, int ranks);

/// Sets the heap sizes of `config` for the tables, which are measured one after the other. Throws no_resource if a
/// rank's words take more than half of the memory of its device, and what `apps::fit` throws.
void fit(beeline::Config& config, const std::vector<Layout>& tables, const apps::Machine& machine);

}  // namespace random_access
