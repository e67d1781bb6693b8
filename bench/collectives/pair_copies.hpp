// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The copies of all pairs of ranks that an all-gather or all-to-all consists of, with nothing that waits for a rank.

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/workplace.hpp"

namespace beeline::bench {

/// How a rank deals its copies to streams.
struct CopyPlan {
  unsigned streams = 1;       ///< of each pair
  std::uint64_t chunk_bytes;  ///< of one copy at most
  bool in_turns = false;      ///< one peer after the other on the same streams; otherwise all peers at once

  [[nodiscard]] Settings settings() const;
};

/// The plans that may be the quickest for pieces of `piece_bytes`: 1, 2 and 4 streams a pair, chunks of 4 to 256 MiB
/// and whole shares, and of more than two GPUs both orders. One plan on host ranks, where the calling thread copies.
[[nodiscard]] std::vector<CopyPlan> copy_plans(const World& world, std::uint64_t piece_bytes);

/// The streams of a rank, shared by all plans.
class PairCopies {
 public:
  explicit PairCopies(std::shared_ptr<Workplace> place);

  /// Puts the copies of one call behind the work of `stream`, which waits for them.
  void start(const CopyPlan& plan, Stream& stream);

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> copied;
  };

  [[nodiscard]] Lane& lane(const CopyPlan& plan, int distance, unsigned stream);
  void copy_piece(const CopyPlan& plan, int distance, Stream& caller);

  std::shared_ptr<Workplace> place_;
  std::vector<Lane> lanes_;  ///< `most_streams` of each distance; none on a host rank
  std::unique_ptr<Event> begun_;
};

}  // namespace beeline::bench
