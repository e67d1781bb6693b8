// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of the calls of device operations. A call that breaks a rule touches nothing; the fault is recorded and the
/// team is aborted, so that the host throws an error that names the fault.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "beeline/device/impl/host_checks.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::detail {

/// The kind of device for which this code is compiled.
inline constexpr DeviceKind executor = BEELINE_ON_GPU ? DeviceKind::gpu : DeviceKind::host;

/// The range that an operation accesses: `bytes` from `local` on, an address of the calling rank.
struct Reach {
  const void* local;
  std::size_t bytes, alignment;
};

/// The range of `count` elements. If the product overflows, the range has the largest size.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Reach reach_of(const T* local, std::size_t count, std::size_t alignment = 1) {
  constexpr std::size_t most = ~std::size_t{0} / sizeof(T);
  return {local, count > most ? ~std::size_t{0} : count * sizeof(T), alignment};
}

/// The range of a word that is loaded or stored by one access.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Reach reach_of_word(const T* local) {
  return {local, sizeof(T), sizeof(T)};
}

[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t address_bits(const Reach& reach) {
  return reinterpret_cast<std::uintptr_t>(reach.local);
}

[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_aligned(const Reach& reach) {
  return (address_bits(reach) & (reach.alignment - 1)) == 0;
}

/// The end of the part of a slot that contains `offset`: a heap, or an area of segments. 0 if `offset` is in no part.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t end_of_part(const Context& ctx, std::uint64_t offset) {
  const SlotLayout slot{ctx.slot_shift};
  if (offset < slot.device_segments_offset()) return ctx.heap_end;
  if (offset < slot.half()) return slot.half();
  if (offset < slot.host_area_offset()) return 0;
  return offset < slot.host_segments_offset() ? ctx.pinned_heap_end : slot.slot_bytes();
}

/// Whether a range is in one allocation that this process may use; only CPU threads can check this.
///   reach  a range in one part of this rank's slot
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_allocated([[maybe_unused]] const Context& ctx,
                                                           [[maybe_unused]] const Reach& reach) {
#if !BEELINE_ON_GPU
  if (ctx.checks != nullptr && reach.bytes != 0) return ctx.checks->holds(ctx.offset_in_slot(reach.local), reach.bytes);
#endif
  return true;
}

/// Whether the whole range is in one part of this rank's slot; true for an empty range.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_symmetric(const Context& ctx, const Reach& reach) {
  const std::uint64_t before = ctx.own_world_rank * SlotLayout{ctx.slot_shift}.slot_bytes();
  const std::uint64_t offset = address_bits(reach) - reinterpret_cast<std::uintptr_t>(ctx.range) - before;
  const std::uint64_t end = end_of_part(ctx, offset);
  return (offset < end && reach.bytes <= end - offset) || reach.bytes == 0;
}

/// Whether the range is in the part of this rank's slot that has aliases, by which only engines name memory of peers on
/// other nodes (host/world.hpp, `register_memory`).
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline bool is_alias(const Context& ctx, Reach reach,
                                                                    std::uint32_t peer) {
  const SlotLayout slot{ctx.slot_shift};
  const std::uint64_t offset = ctx.offset_in_slot(reach.local) - slot.half();
  return ctx.owner_of(reach.local) == ctx.own_world_rank && offset < slot.quarter() &&
         reach.bytes <= slot.quarter() - offset && ctx.access_to(peer).access == PeerAccess::engine;
}

[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_sound(const Context& ctx, const Reach& reach, std::uint32_t peer) {
  return peer < ctx.size && is_aligned(reach) &&
         ((is_symmetric(ctx, reach) && is_allocated(ctx, reach)) || is_alias(ctx, reach, peer));
}

/// Whether this process is a fork of the process that made the world.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_forked([[maybe_unused]] const Context& ctx) {
#if !BEELINE_ON_GPU
  if (ctx.checks != nullptr) return ctx.checks->is_forked;
#endif
  return false;
}

/// Whether an address is in the slot of a rank whose memory this process has not mapped; only CPU threads can check
/// this.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_elsewhere([[maybe_unused]] const Context& ctx,
                                                           [[maybe_unused]] const void* address) {
#if !BEELINE_ON_GPU
  const std::uint32_t owner = ctx.owner_of(address);
  if (owner != no_peer && ctx.checks != nullptr) return !ctx.checks->mapped[owner];
#endif
  return false;
}

/// Whether an address is in a symmetric heap of GPU memory; only CPU threads can check this.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_in_gpu_heap([[maybe_unused]] const Context& ctx,
                                                             [[maybe_unused]] const void* address) {
#if !BEELINE_ON_GPU
  const std::uint32_t owner = ctx.owner_of(address);
  if (owner != no_peer && ctx.checks != nullptr)
    return ctx.checks->on_gpus[owner] && ctx.offset_in_slot(address) < SlotLayout{ctx.slot_shift}.half();
#endif
  return false;
}

/// Whether a CPU thread, or an engine that does not use a GPU, would load or store GPU memory at the calling rank's
/// end.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_own_end_on_gpu(const Context& ctx, const void* own,
                                                                std::uint32_t peer) {
  return is_in_gpu_heap(ctx, own) && (ctx.is_direct(peer) || ctx.kind_of(ctx.rank) == DeviceKind::host);
}

/// The rule that a bad call breaks.
[[nodiscard]] BEELINE_HOST_DEVICE inline Finding finding_in(const Context& ctx, const Reach& reach,
                                                            std::uint32_t peer) {
  if (peer >= ctx.size) return {CallFault::peer, ctx.size, peer};
  if (!is_aligned(reach)) return {CallFault::misaligned, reach.alignment, address_bits(reach)};
  if (reach.local == nullptr) return {CallFault::null_address, reach.bytes};
  if (is_forked(ctx)) return {CallFault::forked};
  if (is_symmetric(ctx, reach)) return {CallFault::not_allocated, reach.bytes, address_bits(reach)};
  return {CallFault::not_symmetric, reach.bytes, address_bits(reach)};
}

/// Refuses a bad call; out of line, so that good calls are not slowed down.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status refuse_unsound(const Context& ctx, Operation operation, Reach reach,
                                                              std::uint32_t peer, bool records) {
  if (!records) return Status::invalid_argument;
  return refuse(ctx, operation, peer, finding_in(ctx, reach, peer), Status::invalid_argument);
}

/// Ends a refused call that has no status to return: on a GPU ends the kernel, on a CPU throws `status`.
[[noreturn]] BEELINE_HOST_DEVICE inline void end_call([[maybe_unused]] const Context& ctx,
                                                      [[maybe_unused]] Operation operation,
                                                      [[maybe_unused]] Finding found, [[maybe_unused]] Status status) {
#if BEELINE_ON_GPU
  machine::fence_system();  // the record reaches the host before the kernel ends
  __trap();
  __builtin_unreachable();
#else
  throw Error(status,
              std::string(name(operation)) + " refused: " + describe(found.fault, found.expected, found.observed),
              static_cast<int>(ctx.own_world_rank));
#endif
}

/// Refuses and ends a bad call.
[[noreturn]] BEELINE_COLD BEELINE_HOST_DEVICE inline void stop_call(const Context& ctx, Operation operation,
                                                                    std::uint32_t peer, Finding found) {
  static_cast<void>(refuse(ctx, operation, peer, found, Status::invalid_argument));
#if BEELINE_ON_GPU
  printf("beeline: rank %u: operation %u refused: fault %u, expected %#llx, observed %#llx\n", ctx.own_world_rank,
         static_cast<unsigned>(operation), static_cast<unsigned>(found.fault),
         static_cast<unsigned long long>(found.expected), static_cast<unsigned long long>(found.observed));
#endif
  end_call(ctx, operation, found, Status::invalid_argument);
}

template <bool checked>
BEELINE_HOST_DEVICE void check_at(const Context& ctx, const void* local, std::uint32_t peer) {
  const Reach reach{local, 1, 1};
  if (!is_sound(ctx, reach, peer)) [[unlikely]]
    stop_call(ctx, Operation::at, peer, finding_in(ctx, reach, peer));
}

inline namespace BEELINE_CALLS {

/// Whether operations check their arguments. CPUs always check: the cost is too small to measure (docs/design.md).
inline constexpr bool checks_operations = BEELINE_CHECKS_CALLS != 0 || executor == DeviceKind::host;

/// `ok`, or `invalid_argument` after one thread of the group has refused an operation on symmetric memory. Every thread
/// calls it.
template <class Group>
BEELINE_HOST_DEVICE Status check_call(const Group& group, const Context& ctx, Operation operation, const Reach& reach,
                                      std::uint32_t peer) {
  if constexpr (checks_operations)
    if (!is_sound(ctx, reach, peer)) [[unlikely]]
      return refuse_unsound(ctx, operation, reach, peer, group.thread_rank() == 0);
  return Status::ok;
}

/// Checks the calling rank's end of a transfer, which may be in any memory that this process has mapped.
template <class Group>
BEELINE_HOST_DEVICE Status check_own_end(const Group& group, const Context& ctx, Operation operation, const void* own,
                                         std::size_t bytes, std::uint32_t peer) {
  if constexpr (checks_operations)
    if ((own == nullptr || is_elsewhere(ctx, own) || is_own_end_on_gpu(ctx, own, peer)) && bytes != 0) [[unlikely]] {
      if (group.thread_rank() != 0) return Status::invalid_argument;
      const auto address = reinterpret_cast<std::uintptr_t>(own);
      const Finding found = own == nullptr           ? Finding{CallFault::null_own_end, bytes}
                            : is_elsewhere(ctx, own) ? Finding{CallFault::own_end_elsewhere, ctx.owner_of(own), address}
                                                     : Finding{CallFault::own_end_on_gpu, bytes, address};
      return refuse(ctx, operation, peer, found, Status::invalid_argument);
    }
  return Status::ok;
}

/// Checks the data and the signal that follows them, before the first byte moves.
template <class Group>
BEELINE_HOST_DEVICE Status check_calls(const Group& group, const Context& ctx, const Reach& data, const Reach& signal,
                                       std::uint32_t peer) {
  const Status status = check_call(group, ctx, Operation::put, data, peer);
  return status == Status::ok ? check_call(group, ctx, Operation::signal, signal, peer) : status;
}

/// Checks one thread's wait for a local word, which may be in any memory; `peer` may be `no_peer`.
BEELINE_HOST_DEVICE inline Status check_wait(const Context& ctx, Operation operation, const Reach& reach,
                                             std::uint32_t peer) {
  if constexpr (checks_operations)
    if (!is_aligned(reach) || reach.local == nullptr || (peer >= ctx.size && peer != no_peer)) [[unlikely]]
      return refuse_unsound(ctx, operation, reach, peer == no_peer ? ctx.rank : peer, true);
  return Status::ok;
}

/// Returns `invalid_argument`, in every build. The refusal is recorded only in units that check calls.
///   records  true on one thread of the group
BEELINE_HOST_DEVICE inline Status refuse_where_checked(const Context& ctx, Operation operation, std::uint32_t peer,
                                                       const Finding& found, bool records) {
  if constexpr (checks_operations)
    if (records) return refuse(ctx, operation, peer, found, Status::invalid_argument);
  return Status::invalid_argument;
}

/// Returns `peer`. For constructors, which return no status: stops the caller if the peer is outside the team.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t checked_peer(const Context& ctx, Operation operation,
                                                                    std::uint32_t peer) {
  if constexpr (checks_operations)
    if (peer >= ctx.size) [[unlikely]]
      stop_call(ctx, operation, peer, {CallFault::peer, ctx.size, peer});
  return peer;
}

}  // namespace BEELINE_CALLS

}  // namespace beeline::detail
