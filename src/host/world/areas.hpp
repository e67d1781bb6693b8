// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The heaps and host areas of a world's ranks, and the headers at their starts.

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "beeline/core/command.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/device/impl/allocation_map.hpp"
#include "beeline/host/team.hpp"
#include "beeline/memory/address_map.hpp"

namespace beeline {

/// Characters of a route's reason, including the terminating zero.
inline constexpr std::size_t max_route_reason = 160;
/// Largest number of streams of one rank at the same time.
inline constexpr std::uint32_t max_streams = 256;
/// Largest number of cores of a node.
inline constexpr std::size_t max_cores = CPU_SETSIZE;

/// The state of a grid of blocks, on cache lines of its own.
struct alignas(64) PaddedGridState {
  GridState state;
};

/// Start of every symmetric heap: state that kernels poll.
struct HeapHeader {
  TeamSync teams[max_teams];
  PaddedGridState grids[max_streams];
  alignas(64) std::uint32_t wait_claims;
  CommandTickets tickets[command_rings];  ///< for commands of this rank's kernels
  /// Copies of the abort words for this rank's kernels: many blocks that polled the words in host memory would contend
  /// for the bus.
  alignas(128) std::uint64_t abort[max_teams];
  alignas(128) AddressTable addresses;
};

/// Data that a member publishes to the other members of a team, valid from one barrier to the next.
struct alignas(64) ExchangeCell {
  std::uint64_t bytes;
  char call[24];  ///< the function that the member is in
  std::byte data[Team::max_gathered_bytes];
};

/// A value that a member publishes for `Team::allreduce`. A member is at most one barrier ahead, so two cells are used
/// in turn.
struct alignas(64) ScalarCell {
  std::uint64_t number;  ///< number of the barrier after the store, from 1 on
  detail::Scalar value;
};

/// The name of a call, truncated, in words that other ranks may read while it changes.
struct alignas(64) CallName {
  std::uint64_t words[4];
};

/// The first cause for which a rank aborted the world, read by other ranks.
struct AbortCause {
  std::uint64_t complete;  ///< 1 before the abort words are raised
  Status status;           ///< status of the errors on other ranks
  char text[1024];
};

/// The first refusal of a command by a rank's engine, read by other ranks.
struct RefusedCommand {
  std::uint64_t is_claimed;  ///< 1 once a thread has begun to write
  std::uint64_t complete;    ///< 1 once the text is written
  char text[512];
};

/// Start of every host area: state that CPU threads poll, and state that other ranks read even after this rank has
/// ended.
struct HostAreaHeader {
  ControlBlock control;
  TeamSync teams[max_teams];         ///< of barriers by CPU threads
  TeamSync kernel_teams[max_teams];  ///< of barriers by kernels of teams that mix GPUs and CPUs
  ExchangeCell cells[max_teams];
  ScalarCell scalars[max_teams][2];
  std::uint32_t barrier_steps[max_teams];  ///< words that this rank has stored in its current barrier
  alignas(64) std::byte node_cells[max_teams][max_node_ranks * sizeof(ExchangeCell)];  ///< of this node's members
  std::uint64_t cores[max_cores / 64];                    ///< bit mask of the cores that the process may run on
  char kernel_names[max_named_kernels][max_kernel_name];  ///< names of this rank's kernels in errors, by number - 1
  PaddedWord held_teams[max_teams];                       ///< whether this rank belongs to a team of this id
  CallName meeting;  ///< the collective function of the world that this rank is in, or failed in; empty: none
  AbortCause abort_cause;
  RefusedCommand refused_command;
  alignas(64) std::uint32_t wait_claims;
  CommandRing rings[2][command_rings];  ///< for this rank's kernels, and for its CPU threads
  CommandTickets host_tickets[command_rings];
  RouteTable routes[max_teams][2];  ///< for kernels, and for CPU threads
  MemberRoute members[max_teams][max_ranks];
  char route_reasons[max_ranks][max_route_reason];  ///< why loads and stores do not reach a peer
};

inline constexpr std::size_t allocation_alignment = detail::AllocationMap::unit;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + allocation_alignment - 1) / allocation_alignment * allocation_alignment;
}

/// Addresses of every rank's heap and host area. Memory of ranks on other nodes is not mapped at its address; only the
/// engine uses these addresses.
class Areas {
 public:
  ///   heaps       [ranks] each at the start of the rank's slot
  ///   host_areas  [ranks]
  Areas(int rank, SlotLayout slot, std::vector<std::byte*> heaps, std::vector<std::byte*> host_areas)
      : rank_(rank), slot_(slot), heaps_(std::move(heaps)), host_areas_(std::move(host_areas)) {}

  [[nodiscard]] HeapHeader* heap_header(int of) const { return reinterpret_cast<HeapHeader*>(at(heaps_, of)); }
  [[nodiscard]] HeapHeader* heap_header() const { return heap_header(rank_); }
  [[nodiscard]] HostAreaHeader* host_header(int of) const {
    return reinterpret_cast<HostAreaHeader*>(at(host_areas_, of));
  }
  [[nodiscard]] HostAreaHeader* host_header() const { return host_header(rank_); }
  /// First byte of this rank's heap that can be allocated.
  [[nodiscard]] std::byte* heap_start() const { return at(heaps_, rank_) + aligned(sizeof(HeapHeader)); }
  [[nodiscard]] std::byte* pinned_start() const { return at(host_areas_, rank_) + aligned(sizeof(HostAreaHeader)); }
  /// Bytes from the start of this rank's slot to an address in it.
  [[nodiscard]] std::uint64_t offset_in_slot(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - at(heaps_, rank_));
  }

  /// Whether an offset in a slot is in the host area or a host segment.
  [[nodiscard]] bool is_host_memory(std::uint64_t offset) const { return offset >= slot_.host_area_offset(); }

  /// Describes an offset in a rank's slot, as `offset 0x40 of its own symmetric heap`.
  [[nodiscard]] std::string describe_offset(std::uint64_t offset) const;
  /// Describes the word that a wait for a signal waited for, as ` at offset 0x40 of its own symmetric heap`; empty:
  /// unknown.
  [[nodiscard]] std::string describe_awaited(const WaitRecord& record) const;

 private:
  [[nodiscard]] static std::byte* at(const std::vector<std::byte*>& all, int of) {
    return all[static_cast<std::size_t>(of)];
  }
  const int rank_;
  const SlotLayout slot_;
  const std::vector<std::byte*> heaps_, host_areas_;
};

}  // namespace beeline
