// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which code may access which memory directly, and which arguments of a call are checked.
///
/// | code on a | GPU memory          | host memory                                             |
/// |-----------|---------------------|---------------------------------------------------------|
/// | GPU       | load, store, atomic | load, store; atomics where they exclude all others    |
/// | CPU       | nothing             | load, store, atomic                                     |
///
/// "Host memory" is the pinned heap of every rank and all memory of host ranks. A GPU's read-modify-write of it
/// (`atomic_*`, `signal_add`, `exchange`) excludes those of CPUs and of other GPUs only where the device says so
/// (hostNativeAtomicSupported, as on Grace). Elsewhere kernels may do it only if every rank of the world is on that one
/// GPU; host code then must not: stores and loads only. A CPU may always reset, by `exchange`, what GPUs only store.
///
/// Operations that this forbids touch nothing and are refused, in every build: the refusal is recorded, the team is
/// aborted, since another rank may wait for the operation's effect, and the host throws an error that names rank,
/// operation, peer, address and kernel. Since a refusal ends the program in any case, the status of an operation that
/// gives the caller nothing back (`put`, `signal`, atomics without a value) may be dropped; that of every other is
/// `[[nodiscard]]`: what waits, fetches or receives has given nothing unless it says ok. `World::copy` and streams
/// reach everything, but a GPU's streams no peer behind an engine. Source: seed 000, 6.3; CUDA C++ Programming Guide,
/// "Mapped memory" and "Atomic functions"; libcu++, hostNativeAtomicSupported.
///
/// **Arguments.** A peer outside the team, an address that does not lie with its whole extent in a heap of the calling
/// rank or where its segments are (not each allocation is looked at), a word that is not aligned, and a null address of
/// a word to wait for are refused in the same way, with `invalid_argument`: always by CPUs; by kernels on GPUs in units
/// that are compiled with BEELINE_CHECKED, which the CMake package defines for Debug builds and builds without a type.
/// Units of both kinds may be linked into one program. Strided transfers with a bad peer, with overlapping blocks or
/// with blocks beyond the end of the address space, and a wait for any of no signals, return `invalid_argument` in
/// every build, and are recorded where calls are checked; a collective whose root is no member is refused in every
/// build. What returns no status throws on a CPU and ends the kernel on a GPU: the constructor of a port and, with
/// BEELINE_CHECKED only, `Context::at`.

#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline {

/// What an operation does to a word.
enum class Access : std::uint32_t { load_store, atomic };

namespace detail {

/// A group in code that is out of the way: its copies take few registers, and are slow.
template <class Group>
struct OutOfLine : Group {};
template <class Group>
inline constexpr bool is_out_of_line = false;
template <class Group>
inline constexpr bool is_out_of_line<OutOfLine<Group>> = true;

/// Whether code on `from` may do this to `target`, an address in the memory of the member in `place`.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool may_touch(const Context& ctx, DeviceKind from, Access access,
                                                        const void* target, std::uint32_t place) {
  if (from == DeviceKind::host) return ctx.kind_at(place) == DeviceKind::host || ctx.in_host_half(target);
  if (access == Access::load_store || ctx.guarded_offsets == 0) return true;
  return ctx.kind_at(place) == DeviceKind::gpu && !ctx.in_host_half(target);
}

/// Decides where a test of constants did not; `refuses`: records it too.
BEELINE_HOST_DEVICE inline Status decide(const Context& ctx, Access access, Operation operation, const Reach& target,
                                         std::uint32_t place, bool refuses) {
  if (may_touch(ctx, executor, access, target.local, place)) return Status::ok;
  if (!refuses) return Status::unreachable;
  constexpr CallFault fault =
      executor == DeviceKind::host ? CallFault::cpu_in_gpu_memory : CallFault::gpu_atomic_on_host;
  return refuse(ctx, operation, place + ctx.first_place, {fault, target.bytes, address_bits(target)},
                Status::unreachable);
}
/// The same out of the way.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status judge(const Context& ctx, Access access, Operation operation,
                                                     Reach target, std::uint32_t place, bool refuses) {
  return decide(ctx, access, operation, target, place, refuses);
}

/// Whether constants alone say that memory of the member in `place` may be accessed.
template <Access access>
[[nodiscard]] BEELINE_HOST_DEVICE bool is_plain(const Context& ctx, const void* local, std::uint32_t place) {
  if constexpr (executor == DeviceKind::host) return ctx.kind_at(place) == DeviceKind::host;
  if constexpr (access == Access::load_store) return true;  // what is mapped, kernels load and store
  return !ctx.is_guarded(ctx.translate(static_cast<const std::byte*>(local), place));
}

/// `ok`, or `unreachable` after one thread of the group has refused access to `reach` of the member in `place`. Every
/// thread calls it.
template <Access access, class Group>
BEELINE_HOST_DEVICE Status check_access(const Group& group, const Context& ctx, Operation operation, const Reach& reach,
                                        std::uint32_t place) {
  if constexpr (executor == DeviceKind::gpu && access == Access::load_store) {
    return Status::ok;
  } else {
    if (is_plain<access>(ctx, reach.local, place)) return Status::ok;
    const Reach target{ctx.translate(static_cast<const std::byte*>(reach.local), place), reach.bytes, 1};
    if constexpr (is_out_of_line<Group>)
      return decide(ctx, access, operation, target, place, group.thread_rank() == 0);
    else
      return judge(ctx, access, operation, target, place, group.thread_rank() == 0);
  }
}

/// The same for a read-modify-write of a local word by one thread. Of a word outside all slots nothing is known.
BEELINE_HOST_DEVICE inline Status check_local_atomic(const Context& ctx, Operation operation, const Reach& word) {
  const bool is_plain =
      executor == DeviceKind::gpu ? !ctx.is_guarded(word.local) : ctx.kind_of(ctx.rank) == DeviceKind::host;
  if (is_plain || ctx.owner_of(word.local) == no_peer) return Status::ok;
  return judge(ctx, Access::atomic, operation, word, ctx.rank - ctx.first_place, true);
}

inline namespace BEELINE_CALLS {

/// An operation where there are routes, or on memory that is not plain: by an engine, by loads and stores, or refused.
/// All of it is out of the way, and takes values: what it took by reference would have to lie in memory.
template <class Group, class Operation>
BEELINE_COLD BEELINE_HOST_DEVICE typename Operation::Result pass_out_of_line(Group group, const Context& ctx,
                                                                             Operation operation) {
  const Request request = operation.request();
  const WayToPeer to = ctx.way_to(request.peer);
  if (to.way == Way::engine) return operation.by_engine(group, ctx);
  const OutOfLine<Group> slow{group};
  Status status = Status::unreachable;
  if (to.way == Way::direct)
    status = check_access<Operation::access>(slow, ctx, request.operation, operation.reach(), to.place);
  else if (group.thread_rank() == 0)
    status = refuse_route(ctx, request.operation, request.peer);
  if (status != Status::ok) return {status};
  return operation.by_loads(slow, ctx, to.place);
}

/// Admission, which every operation asks for once its arguments are checked: finds the route to its peer. Every thread
/// calls it. `operation` is a small structure, whose copy costs a register for each word:
///   Access access, Result        what it does to memory; `Status`, or a structure that begins with it
///   request(), reach()           of the peer; what it uses of the peer's memory, as an address of the caller
///   by_loads(group, ctx, place)  loads and stores at the peer's place
///   by_engine(group, ctx)        posts commands
/// Returns what the last two do; `unreachable` after one thread of the group has refused the operation. What is not
/// plain ends out of line, and does not come back to the loads and stores below: so a peer's address, once computed,
/// serves these too, and stays in uniform registers where it is the same for all threads.
template <class Group, class Operation>
BEELINE_HOST_DEVICE typename Operation::Result pass(const Group& group, const Context& ctx,
                                                    const Operation& operation) {
  // Where the peer's memory is looked at, that is done beside the test of routes, not behind it: any number is a place.
  constexpr bool looks = executor == DeviceKind::host || Operation::access == Access::atomic;
  const std::uint32_t peer = operation.request().peer, place = looks ? peer % max_ranks : peer;
  const bool plain = is_plain<Operation::access>(ctx, operation.reach().local, place);
  if ((ctx.has_routes != 0) | !plain) [[unlikely]]
    return pass_out_of_line(group, ctx, operation);
  return operation.by_loads(group, ctx, place);
}

/// The same with the check of arguments before it (invalid_argument).
template <class Group, class Operation>
BEELINE_HOST_DEVICE typename Operation::Result admit(const Group& group, const Context& ctx,
                                                     const Operation& operation) {
  const Request request = operation.request();
  const Status status = check_call(group, ctx, request.operation, operation.reach(), request.peer);
  if (status != Status::ok) return {status};
  return pass(group, ctx, operation);
}

}  // namespace BEELINE_CALLS

}  // namespace detail

/// Whether `atomic_*` and `signal_add` on `target` at `peer` work from here; otherwise they are refused.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_atomics(const Context& ctx, const void* target, std::uint32_t peer) {
  const WayToPeer to = ctx.way_to(peer);
  if (to.way != Way::direct) return to.way == Way::engine;
  return detail::may_touch(ctx, detail::executor, Access::atomic,
                           ctx.translate(static_cast<const std::byte*>(target), to.place), to.place);
}

/// Whether this code may load and store `target` at `peer`, through `ctx.at` or by operations. Where an engine carries
/// these, it may not: `ctx.way_to(peer)` tells.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_loads_and_stores(const Context& ctx, const void* target,
                                                                   std::uint32_t peer) {
  const WayToPeer to = ctx.way_to(peer);
  return to.way == Way::direct &&
         detail::may_touch(ctx, detail::executor, Access::load_store,
                           ctx.translate(static_cast<const std::byte*>(target), to.place), to.place);
}

}  // namespace beeline
