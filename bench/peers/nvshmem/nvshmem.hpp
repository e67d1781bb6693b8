// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NVSHMEM for comparison: the same loops over the same ranks, with NVSHMEM's device functions and its own heap.
/// Without NVSHMEM in the build, every function throws unavailable.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/group_choice.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench::nvshmem {

/// Collective. Starts NVSHMEM on all ranks, once in a process. Throws unavailable if it is not in the build, or a rank
/// shares its GPU or has none.
void start(Bench& bench);

/// Collective. Ends NVSHMEM if `start` started it.
void stop();

/// Memory of NVSHMEM's symmetric heap, zeroed.
class Memory {
 public:
  /// Collective; the destructor is collective, too.
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  void write(const void* from, std::size_t bytes);
  void read(void* to, std::size_t bytes) const;

 private:
  std::byte* data_;
};

/// The data of ping-pongs and loops of one block.
struct Setup {
  GroupChoice choice;
  std::byte *destination, *source;
  std::size_t bytes;
  std::uint64_t* word;  ///< the signal, or the word that atomics change
};

enum class BlockOperation { put_signal, signal, barrier, sync, fetch_add };

/// Runs one operation in a loop of one block on each rank that takes part. Sequence numbers continue from launch to
/// launch.
class TimedBlock {
 public:
  /// Collective.
  explicit TimedBlock(Bench& bench);
  /// Collective. Nanoseconds of each batch by this rank's clock; empty on ranks that take no part.
  std::vector<double> run(BlockOperation operation, const Setup& setup, Rounds rounds);
  /// Sequence number of the last round.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  Bench& bench_;
  Memory stamps_;
  std::uint64_t last_ = 0;
};

/// Grids that store to the peer or add to random words of all ranks.
class TimedBlocks {
 public:
  /// Collective.
  TimedBlocks(Bench& bench, unsigned most_blocks);
  /// Collective. Nanoseconds that rank 0 takes to put `messages` messages of `bytes` from `source` to `destination`.
  double put(unsigned blocks, std::byte* destination, const std::byte* source, std::size_t bytes,
             std::uint32_t messages);
  /// Collective. Nanoseconds of the slowest rank for `each` additions by every thread.
  double update(unsigned blocks, std::uint64_t* table, std::uint64_t words, std::uint64_t seed, std::uint64_t each);
  /// Two sums of this rank: of the words of its table, and of the numbers that `update` adds with the same arguments.
  std::uint64_t sum(const std::uint64_t* table, std::uint64_t words);
  std::uint64_t sum_of_updates(unsigned blocks, std::uint64_t words, std::uint64_t seed, std::uint64_t each);

 private:
  Bench& bench_;
  Memory times_, total_;
};

}  // namespace beeline::bench::nvshmem
