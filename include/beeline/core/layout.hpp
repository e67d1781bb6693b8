// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Structures in shared memory that host code, kernels and other processes read.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/status.hpp"

namespace beeline {

/// The kind of device on which a rank runs, or which executes a piece of code.
enum class DeviceKind : std::uint32_t { host, gpu };

/// Largest number of ranks of a world, and of one node. Members of a team on the caller's node have a place in its
/// contexts.
inline constexpr std::uint32_t max_ranks = 1024, max_node_ranks = 64;
/// Smallest and largest log2 of the size of a rank's slot. Distances between slots are multiples of the smallest size.
inline constexpr std::uint32_t min_slot_shift = 32, max_slot_shift = 40;

/// The areas of a slot of 2^shift bytes. The last quarter is the host area and the host segments, half of it each:
///   [ heap | device segments | free | host area, host segments ]
struct SlotLayout {
  std::uint32_t shift;
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t slot_bytes() const { return std::size_t{1} << shift; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t half() const { return slot_bytes() / 2; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t quarter() const { return slot_bytes() / 4; }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t device_segments_offset() const { return quarter(); }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t host_area_offset() const { return half() + quarter(); }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t host_segments_offset() const {
    return host_area_offset() + quarter() / 2;
  }
};
/// Largest number of teams that exist at the same time, the world included (team 0).
inline constexpr std::uint32_t max_teams = 64;
/// A set of teams: a bit for each id.
using TeamSet = std::uint64_t;
static_assert(max_teams <= 64);
/// The set that holds the team `id` alone.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr TeamSet team_set(std::uint32_t id) { return TeamSet{1} << id; }
/// Largest number of queues (ordered sequences of operations) that a rank may use towards each peer.
inline constexpr std::uint32_t max_queues = 32;
/// Number of failed waits that one rank can record between two checks; later failures are only counted.
inline constexpr std::uint32_t max_wait_records = 64;
/// Number of kernels that a rank's errors can name, and the length of a name, with its terminating zero. Kernels are
/// numbered from 1.
inline constexpr std::uint32_t max_named_kernels = 512, max_kernel_name = 128;

/// The record of a failed wait, with the expected and the observed value, or of a refused operation. In the record of a
/// refused operation `sequence` is a CallFault, which defines the meaning of `expected` and `observed`.
struct WaitRecord {
  std::uint32_t status;     ///< Status that was returned: deadline, aborted or unreachable; 0: record unused
  std::uint32_t operation;  ///< Operation
  std::uint32_t rank;       ///< world rank that waited
  std::uint32_t peer;       ///< world rank waited for, or `no_peer`
  std::uint32_t team;       ///< team id
  std::uint8_t comparison;  ///< Compare: `observed <comparison> expected` did not hold
  bool resident;            ///< whether all blocks of the kernel were resident (`LaunchOptions::waits`)
  std::uint16_t kernel;     ///< number of the kernel that waited, counted on its rank; 0: host code, or unknown
  std::uint64_t sequence;   ///< number of the message or epoch; for `Operation::wait` the word's offset in the slot
  std::uint64_t expected, observed;
  std::uint64_t waited_ns;
};
inline constexpr std::uint32_t no_peer = 0xffffffffu;
static_assert(std::is_trivially_copyable_v<WaitRecord> && sizeof(WaitRecord) == 56);

/// Abort word of a team: 0 while the team is not aborted, otherwise `abort_word(culprit)`. Several threads may write
/// it; no thread reads it before it writes, so no atomics between GPUs and CPUs are needed.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t abort_word(std::uint32_t culprit) {
  return std::uint64_t{1} + culprit;
}

/// A table of wait records that either kernels or CPU threads write. The counter of used records is in memory on which
/// the writers have atomics.
struct WaitTable {
  WaitRecord records[max_wait_records];
};

/// Words of a rank that other ranks and its own kernels read, at the start of its host area.
struct ControlBlock {
  alignas(128) std::uint64_t abort[max_teams];
  alignas(128) WaitTable device_waits;  ///< written by this rank's kernels
  alignas(128) WaitTable host_waits;    ///< written by this rank's CPU threads
};

/// A 64-bit word alone in its cache line.
struct alignas(64) PaddedWord {
  std::uint64_t value;
};

/// Largest number of rounds of a barrier between nodes: after r rounds a node knows that 2^r nodes have arrived.
inline constexpr std::uint32_t max_barrier_rounds = 10;
static_assert(1u << max_barrier_rounds >= max_ranks);

/// Barrier state of one team on one rank, in memory that this rank polls.
struct TeamSync {
  PaddedWord arrived_from[max_node_ranks];  ///< epoch that the member in each place has reached, written by that member
  PaddedWord entered, completed;            ///< epochs that this rank has entered and completed
  PaddedWord drained;                       ///< commands of queue 0, the first so many, that are complete or signals of
                                            ///< this member's barriers (barrier_by_routes.hpp)
  PaddedWord rounds[max_barrier_rounds];    ///< epoch that this node has reached in each round with other nodes, used
                                            ///< if the team has more members than there are places
};

/// State of one grid-wide barrier, in memory local to the kernel's device.
struct GridState {
  std::uint32_t arrived;
  std::uint32_t generation;
};

}  // namespace beeline
