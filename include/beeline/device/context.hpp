// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The context that a kernel needs to communicate; kernels take it by value.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/command.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/core/wait_policy.hpp"

namespace beeline {

struct Context;

namespace detail {

struct HostChecks;
/// In a unit compiled with BEELINE_CHECKED: stops the caller if the address or the peer is not valid for `at`
/// (caller_check.hpp).
template <bool checked>
BEELINE_HOST_DEVICE void check_at(const Context& ctx, const void* local, std::uint32_t peer);
/// Distance in bytes from this rank's memory to the memory of a peer that is not direct. Stops the caller if loads and
/// stores do not reach the peer (route.hpp).
template <bool checked>
BEELINE_COLD BEELINE_HOST_DEVICE std::int64_t distance_by_route(const Context& ctx, std::uint32_t peer);

}  // namespace detail

/// Rank, team and addresses for device operations. Made by `Team::context()`; a context may be copied, also into shared
/// memory. A program's own CUDA kernels take it as `const __grid_constant__ Context`, so that it stays in constant
/// memory. Every `peer` below and in every operation is a rank of the team, less than `size`; access.hpp says when a
/// peer is checked.
struct Context {
  std::byte* range;                  ///< start of the address range in this process
  const std::uint64_t* abort_words;  ///< this rank's abort words, one for each team, in memory that waits with this
                                     ///< context poll
  std::uint64_t* host_abort_words;   ///< abort words for this rank's CPU threads: on a host rank the same words, on a
                                     ///< GPU rank words in host memory
  WaitRecord* waits;                 ///< [max_wait_records] records of failed waits with this context
  std::uint32_t* wait_claims;        ///< number of records used, in memory on which the code that records has atomics
  TeamSync* sync;                    ///< this rank's barrier state, symmetric
  std::uint64_t deadline_ns;         ///< longest duration of every wait
  std::uint32_t slot_shift;          ///< log2 of a rank's slot
  std::uint32_t slots;               ///< number of slots: one for each rank of the world
  Polling polling;                   ///< host: how a waiting thread spends the time between polls
  std::uint32_t team;                ///< team id
  std::uint32_t rank, size;          ///< this rank in the team, members of the team
  std::uint32_t own_world_rank;      ///< this rank in the world
  bool mixed;                        ///< whether the team has GPU ranks and host ranks
  bool resident;         ///< all threads that use the context run at once: host code, kernels launched with `waits`
  std::uint16_t kernel;  ///< number of the kernel that has this context, for errors; 0: none
  std::uint64_t gpu_members;  ///< one bit for each place: set if its member is a GPU rank
  /// Mask of offsets in `range`: an address with one of these bits may be in host memory on which this rank's kernels
  /// have no atomics. 0 if kernels have atomics on all memory; the bit of the host half in worlds of GPU ranks; all
  /// bits if members differ in kind.
  std::uint64_t guarded_offsets;
  /// Routes to the members that this rank does not reach by loads and stores, or that have no place in this context.
  /// nullptr: all members are direct, and rank p of the team has place p. See `set_routes`.
  const RouteTable* routes;
  std::uint64_t direct_places;  ///< with routes, one bit for each place: set if its member is direct and
                                ///< `first_place` after it in the team; other direct members are only in the table
  std::uint32_t first_place;    ///< rank of the team that has the first place; 0 without routes. This rank's own place
                                ///< is `rank - first_place` always
  std::uint32_t places;         ///< places that are used; without routes one for each member
  std::uint32_t has_routes;  ///< 0 or 1: operations test this word, since testing a pointer takes 20 ns more on an H100
  /// Distance from this rank's slot to the slot of the member in each place, in units of 2^min_slot_shift bytes. With
  /// this table an address costs one load and one addition. Members of other nodes have no place.
  std::int32_t distances[max_node_ranks];
  /// Ends of the symmetric and the pinned heap, in bytes from the start of a slot: the same on every rank.
  std::uint64_t heap_end, pinned_heap_end;
  /// Data by which CPU threads check arguments; nullptr in contexts of kernels on a GPU.
  const detail::HostChecks* checks;

  BEELINE_HOST_DEVICE void set_routes(const RouteTable* table) {
    routes = table, has_routes = table == nullptr ? 0 : 1;
  }

  /// World rank of the team's `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t world_rank(std::uint32_t peer) const {
    if (has_routes != 0) [[unlikely]]
      return routes->members[peer].world_rank;
    return own_world_rank + static_cast<std::uint32_t>(distances[peer] >> (slot_shift - min_slot_shift));
  }

  /// How this rank reaches the team's `peer`, and the peer's place. Without routes every peer is direct.
  [[nodiscard]] BEELINE_HOST_DEVICE AccessToPeer access_to(std::uint32_t peer) const {
    if (is_direct(peer)) return {PeerAccess::direct, peer - first_place};
    return routes->members[peer].to;
  }
  /// Whether the team's `peer` is direct and `peer - first_place` is its place. Without routes this is true for every
  /// peer; with routes the other peers are in the table.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_direct(std::uint32_t peer) const {
    if (has_routes == 0) [[likely]]
      return true;
    const std::uint32_t place = peer - first_place;
    return place < max_node_ranks && (direct_places >> place & 1u) != 0;
  }

  /// The member in a place. May search all members, so it is for errors only.
  [[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE std::uint32_t member_at(std::uint32_t place) const {
    const std::uint32_t next = place + first_place;
    if (has_routes == 0 || (next < size && routes->members[next].to.place == place)) return next;
    for (std::uint32_t peer = 0; peer < size; ++peer)
      if (routes->members[peer].to.access == PeerAccess::direct && routes->members[peer].to.place == place) return peer;
    return no_peer;
  }

  /// The kind of device on which the team's `peer` runs.
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceKind kind_of(std::uint32_t peer) const {
    return has_routes == 0 ? kind_at(peer) : routes->members[peer].kind;
  }
  /// The kind of device on which the member in a place runs.
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceKind kind_at(std::uint32_t place) const {
    return (gpu_members >> place & 1u) != 0 ? DeviceKind::gpu : DeviceKind::host;
  }

  /// Whether an address inside the range is in the half of its slot that is host memory on every rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool in_host_half(const void* address) const {
    return (offset_of(address) >> (slot_shift - 1) & 1u) != 0;
  }

  /// Whether an atomic of this rank's kernels on an address inside the range needs a further check.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_guarded(const void* address) const {
    return (offset_of(address) & guarded_offsets) != 0;
  }

  /// The address on `peer` that corresponds to `local` in this rank's symmetric memory. The caller can load from and
  /// store to it directly (global address space). An error ends a kernel, or is thrown on a CPU thread:
  /// invalid_argument for a bad peer or address, if BEELINE_CHECKED is defined; unreachable, in every build, if loads
  /// and stores do not reach the peer. Source: seed 000 chapter 6.
  template <class T, bool checked = BEELINE_CHECKS_CALLS != 0>
  [[nodiscard]] BEELINE_HOST_DEVICE T* at(T* local, std::uint32_t peer) const {
    if constexpr (checked) detail::check_at<checked>(*this, local, peer);
    if (!is_direct(peer)) [[unlikely]]
      return moved(local, detail::distance_by_route<checked>(*this, peer));
    return translate(local, peer - first_place);
  }

  /// As `at`, for the member in `place`, without checks: for arguments that have already been checked.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE T* translate(T* local, std::uint32_t place) const {
    return moved(local, distance_to(place));
  }
  /// Distance in bytes from this rank's memory to the memory of the member in `place`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::int64_t distance_to(std::uint32_t place) const {
    return std::int64_t{distances[place]} * (std::int64_t{1} << min_slot_shift);
  }

  /// World rank that owns the memory at `address`, or `no_peer` outside the range. Costs one subtraction and one shift.
  /// Source: seed 001, unified virtual address space; seed 000 section 6.3.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(const void* address) const {
    const std::uintptr_t slot = offset_of(address) >> slot_shift;
    return slot < slots ? static_cast<std::uint32_t>(slot) : no_peer;
  }

  /// Offset in bytes of an address inside the range from the start of its slot.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t offset_in_slot(const void* address) const {
    return offset_of(address) & (SlotLayout{slot_shift}.slot_bytes() - 1);
  }

 private:
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE static T* moved(T* local, std::int64_t distance) {
    return reinterpret_cast<T*>(reinterpret_cast<std::intptr_t>(local) + distance);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t offset_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(range);
  }
};
static_assert(std::is_trivially_copyable_v<Context> && std::is_standard_layout_v<Context>);

// Kernels that other compilers make (Fortran, Numba, Triton) read these members by their offsets. docs/c.md and
// `beeline_context` (c/context.h) have the same offsets. Raise BEELINE_INTERFACE (core/version.h) with each change.
static_assert(offsetof(Context, range) == 0 && offsetof(Context, abort_words) == 8);
static_assert(offsetof(Context, host_abort_words) == 16 && offsetof(Context, waits) == 24);
static_assert(offsetof(Context, wait_claims) == 32 && offsetof(Context, sync) == 40);
static_assert(offsetof(Context, deadline_ns) == 48 && offsetof(Context, slot_shift) == 56);
static_assert(offsetof(Context, slots) == 60 && offsetof(Context, polling) == 64 && offsetof(Context, team) == 68);
static_assert(offsetof(Context, rank) == 72 && offsetof(Context, size) == 76);
static_assert(offsetof(Context, own_world_rank) == 80 && offsetof(Context, mixed) == 84);
static_assert(offsetof(Context, resident) == 85 && offsetof(Context, kernel) == 86);
static_assert(offsetof(Context, gpu_members) == 88 && offsetof(Context, guarded_offsets) == 96);
static_assert(offsetof(Context, routes) == 104 && offsetof(Context, direct_places) == 112);
static_assert(offsetof(Context, first_place) == 120 && offsetof(Context, places) == 124);
static_assert(offsetof(Context, has_routes) == 128 && offsetof(Context, distances) == 132);
static_assert(offsetof(Context, heap_end) == 392 && offsetof(Context, pinned_heap_end) == 400);
static_assert(offsetof(Context, checks) == 408 && sizeof(Context) == 416);

}  // namespace beeline
