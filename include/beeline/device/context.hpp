// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a kernel needs to communicate, passed to it by value.

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

/// Stops a unit compiled with BEELINE_CHECKED at an address or a peer that `at` does not take (caller_check.hpp).
template <bool checked>
BEELINE_HOST_DEVICE void check_at(const Context& ctx, const void* local, std::uint32_t peer);
/// From this rank's memory to that of a peer that is not near, in bytes; stops where loads and stores do not reach it
/// (route.hpp).
template <bool checked>
BEELINE_COLD BEELINE_HOST_DEVICE std::int64_t distance_by_route(const Context& ctx, std::uint32_t peer);

}  // namespace detail

/// Rank, team and addresses for device operations. Made by `Team::context()`; copies are free, also into shared memory.
/// Kernels of your own take it as `const __grid_constant__ Context`, so that it stays in constant memory. Every `peer`
/// below, and of every operation, is a rank of the team, less than `size`. Who checks that, and when, is said in
/// access.hpp.
struct Context {
  std::byte* range;                  ///< start of the address range in this process
  const std::uint64_t* abort_words;  ///< this rank's, one for each team, where this context's waiters poll
  std::uint64_t* host_abort_words;   ///< this rank's for CPU threads: the same on a host rank, host memory beside a GPU
  WaitRecord* waits;                 ///< where this context's waits are recorded [max_wait_records]
  std::uint32_t* wait_claims;        ///< records used, in memory where the recorder has atomics
  TeamSync* sync;                    ///< this rank's barrier state, symmetric
  std::uint64_t deadline_ns;         ///< end of every wait
  std::uint32_t slot_shift;          ///< log2 of a rank's slot
  std::uint32_t slots;               ///< ranks that have a slot: those of the world
  Polling polling;                   ///< host: what a waiter does between polls
  std::uint32_t team;                ///< team id
  std::uint32_t rank, size;          ///< this rank in the team, members of the team
  std::uint32_t own_world_rank;      ///< this rank in the world
  bool mixed;                        ///< members of both kinds
  bool resident;         ///< all threads that it is for run at once: host code, kernels that are launched with `waits`
  std::uint16_t kernel;  ///< number of the kernel that it was launched with, for errors; 0: none
  std::uint64_t gpu_members;  ///< bit by place: its member is a GPU rank
  /// Bits of an offset in `range` that may mean host memory in which this rank's kernels have no atomics: 0 where they
  /// have them everywhere, the bit of the host half in worlds of GPUs, all where members differ in kind.
  std::uint64_t guarded_offsets;
  /// Where members are that this rank does not reach by loads and stores, or that have no place here; nullptr: all
  /// are direct, and rank p of the team has place p. See `set_routes`.
  const RouteTable* routes;
  std::uint64_t direct_places;  ///< with routes, bit by place: its member is direct
  std::uint32_t first_place;    ///< rank of the team that has the first place; 0 without routes
  std::uint32_t places;         ///< members that have a place; all without routes
  std::uint32_t has_routes;     ///< 0 or 1: all that operations test, since a pointer takes 20 ns longer on an H100
  /// From this rank's slot to that of the member in each place, in steps of 2^min_slot_shift bytes: between a flag's
  /// arrival and the answer an address costs one load and one addition. Members of other nodes have no place.
  std::int32_t distances[max_ranks];
  /// Where the symmetric and the pinned heap end, in bytes from the start of a slot: the same on every rank.
  std::uint64_t heap_end, pinned_heap_end;

  BEELINE_HOST_DEVICE void set_routes(const RouteTable* table) {
    routes = table, has_routes = table == nullptr ? 0 : 1;
  }

  /// World rank of the team's `peer`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t world_rank(std::uint32_t peer) const {
    if (has_routes != 0) [[unlikely]]
      return routes->members[peer].world_rank;
    return own_world_rank + static_cast<std::uint32_t>(distances[peer] >> (slot_shift - min_slot_shift));
  }

  /// How this rank reaches the team's `peer`, which is direct, with its place, where there are no routes.
  [[nodiscard]] BEELINE_HOST_DEVICE WayToPeer way_to(std::uint32_t peer) const {
    if (is_near(peer)) return {Way::direct, peer - first_place};
    return routes->members[peer].way;
  }
  /// Whether the team's `peer` is direct and `peer - first_place` its place: so are all where there are no routes. The
  /// table tells of others.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_near(std::uint32_t peer) const {
    if (has_routes == 0) [[likely]]
      return true;
    const std::uint32_t place = peer - first_place;
    return place < max_ranks && (direct_places >> place & 1u) != 0;
  }

  /// What the team's `peer` runs on.
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceKind kind_of(std::uint32_t peer) const {
    return has_routes == 0 ? kind_at(peer) : routes->members[peer].kind;
  }
  /// The same of the member in a place.
  [[nodiscard]] BEELINE_HOST_DEVICE DeviceKind kind_at(std::uint32_t place) const {
    return (gpu_members >> place & 1u) != 0 ? DeviceKind::gpu : DeviceKind::host;
  }

  /// Whether an address inside the range lies in the half of its slot that is host memory on every rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool in_host_half(const void* address) const {
    return (offset_of(address) >> (slot_shift - 1) & 1u) != 0;
  }

  /// Whether atomics of this rank's kernels on an address inside the range take more than this test to allow.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_guarded(const void* address) const {
    return (offset_of(address) & guarded_offsets) != 0;
  }

  /// The address on `peer` of what `local` is here. `local` lies in this rank's symmetric memory; the result can be
  /// loaded from and stored to directly (global address space). Where BEELINE_CHECKED is defined, a kernel stops, and a
  /// CPU thread throws invalid_argument, at what is not so; in every build at a peer that loads and stores do not reach
  /// (unreachable). Source: seed 000 chapter 6.
  template <class T, bool checked = BEELINE_CHECKS_CALLS != 0>
  [[nodiscard]] BEELINE_HOST_DEVICE T* at(T* local, std::uint32_t peer) const {
    if constexpr (checked) detail::check_at<checked>(*this, local, peer);
    if (!is_near(peer)) [[unlikely]]
      return moved(local, detail::distance_by_route<checked>(*this, peer));
    return translate(local, peer - first_place);
  }

  /// As `at` of the member in `place`, and never checked: for what has been checked before.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE T* translate(T* local, std::uint32_t place) const {
    return moved(local, distance_to(place));
  }
  /// From this rank's memory to that of the member in `place`, in bytes.
  [[nodiscard]] BEELINE_HOST_DEVICE std::int64_t distance_to(std::uint32_t place) const {
    return std::int64_t{distances[place]} * (std::int64_t{1} << min_slot_shift);
  }

  /// World rank whose memory `address` is, or `no_peer` outside the range. One subtraction, one shift.
  /// Source: seed 001, unified virtual address space; seed 000 section 6.3.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t owner_of(const void* address) const {
    const std::uintptr_t slot = offset_of(address) >> slot_shift;
    return slot < slots ? static_cast<std::uint32_t>(slot) : no_peer;
  }

  /// From the start of its slot on, of an address inside the range.
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
static_assert(std::is_trivially_copyable_v<Context>);

}  // namespace beeline
