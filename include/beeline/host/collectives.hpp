// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives of a team: the memory that they need, the channel for kernels, and the calls on streams.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "beeline/collectives/algorithm.hpp"
#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/reduction.hpp"
#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Sizes of a channel. All ranks give the same; 0: by the kind and number of ranks.
struct CollectiveOptions {
  unsigned lanes = 0;             ///< blocks that may take part in a call
  std::size_t packet_bytes = 0;   ///< payload of a round of packets, on each lane from each rank
  std::size_t staging_bytes = 0;  ///< on each lane, for vectors that do not lie alike on all ranks, twice
  std::uint64_t first_round = 0;  ///< where rounds start to count
  /// Members compare every call, and find those that differ, or overlap on one rank: about 1.5 us each on GPUs. Also
  /// set for all channels by `Config::check_collectives`.
  bool checks = false;
};

/// How one call is to be made.
struct CollectiveCall {
  Stream* stream = nullptr;                    ///< nullptr: the rank's default stream
  Algorithm algorithm = Algorithm::automatic;  ///< the same on all ranks
  unsigned blocks = 0;                         ///< the same on all ranks; 0: by size
};

/// A channel for the collectives of the world or of a team, and what a host asks of it. Calls on one channel are made
/// in the same order by all members, one after the other: on one stream, or on streams that wait for each other. Calls
/// that are to go on at the same time use several objects.
class Collectives {
 public:
  /// Collective over the world. For all its ranks.
  /// Throws invalid_argument when ranks give different options, no_resource when the heap is full.
  explicit Collectives(World& world, const CollectiveOptions& options = {});
  /// Collective over the world, as `World::make_team`. Each rank passes its team, which outlives this, or nullptr.
  Collectives(World& world, const Team* team, const CollectiveOptions& options = {});
  /// Collective over the world. The calls must be over: the memory is freed.
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// For kernels (collectives/*.hpp), by value. While a kernel uses it, no other call does.
  [[nodiscard]] const CollectiveChannel& channel() const;
  /// The context of its members: pass it to kernels through `LaunchOptions::context`.
  [[nodiscard]] const Context& context() const;

  /// All-reduce of `count` elements, on a stream; asynchronous, in its order, as one kernel.
  ///   source       [count], aligned to its elements, unchanged until the stream has passed the call
  ///   destination  [count], the same; may be `source`, otherwise the two do not overlap
  /// Memory is whatever this rank's kernels reach; in the symmetric heap, at the same place on all ranks, it is used as
  /// it is also by algorithms that read and write it from other ranks.
  /// Throws invalid_argument, before anything is touched, for a count, type, reduction, algorithm, alignment or number
  /// of blocks that does not work; failures of the call itself come with `World::synchronize`.
  void allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                           Reduction reduction, const CollectiveCall& call = {});

  /// The algorithm and the number of blocks that `call` takes for an all-reduce of `count` elements.
  [[nodiscard]] CollectiveCall allreduce_choice(std::size_t count, ElementType type,
                                                const CollectiveCall& call = {}) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
