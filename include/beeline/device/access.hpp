// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which code may load from, store to and do atomics on which memory, and which arguments of a call are checked.
///
/// | code on a | GPU memory          | host memory                                             |
/// |-----------|---------------------|---------------------------------------------------------|
/// | GPU       | load, store, atomic | load, store; atomics only on some devices (below)     |
/// | CPU       | nothing             | load, store, atomic                                     |
///
/// "Host memory" is the pinned heap of every rank and all memory of host ranks. A GPU's read-modify-write of host
/// memory (`atomic_*`, `signal_add`, `exchange`) is atomic towards CPUs and other GPUs only if the device says so
/// (hostNativeAtomicSupported, as on Grace). On other devices a kernel may do such an operation only if every rank of
/// the world is on that one GPU; host code must then use only loads and stores on that memory. A CPU may always
/// `exchange` a word that GPUs only store to.
///
/// A forbidden operation is *refused*, in every build. It touches nothing, and the refusal is recorded. The team is
/// aborted, since another rank may wait for the operation's effect. The host throws an error that names rank,
/// operation, peer, address and kernel. Since the host throws in any case, a program may ignore the status of an
/// operation without a result (`put`, `signal`, atomics that return no value). The status of all other operations is
/// `[[nodiscard]]`: if it is not `ok`, there is no result. `World::copy` and streams reach all memory except the memory
/// of a GPU that the process does not see. Source: seed 000, 6.3; CUDA C++ Programming Guide, "Mapped memory" and
/// "Atomic functions"; libcu++, hostNativeAtomicSupported.
///
/// **Arguments.** Bad arguments are refused in the same way, with `invalid_argument`. CPUs always check them. GPU
/// kernels check them in translation units that are compiled with BEELINE_CHECKED, which the CMake package defines for
/// Debug builds and for builds without a type. One program may link units of both kinds. These are bad arguments:
///   - a peer outside the team;
///   - an address range that is not entirely inside a heap, or the area of segments, of the calling rank (the bounds of
///     single allocations are checked by CPUs alone);
///   - a word that is not aligned;
///   - a null address of a word to wait for, of the source of a put, or the destination of a get.
///
/// Some arguments are checked in every build. A collective whose root is not a member is refused. `invalid_argument` is
/// also returned by strided transfers with a bad peer, overlapping blocks or blocks beyond the end of the address
/// space, and by `wait_any` of 0 signals; these are recorded only in units that check arguments. The constructors of
/// ports and `Context::at` return no status. For a bad argument they throw on a CPU and end the kernel on a GPU; `at`
/// checks it only with BEELINE_CHECKED.

#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline {

/// How an operation accesses memory: by plain loads and stores, or by atomic read-modify-writes.
enum class Access : std::uint32_t { load_store, atomic };

namespace detail {

/// Marks a group as used in out-of-line code, which copies more slowly with few registers.
template <class Group>
struct OutOfLine : Group {};
template <class Group>
inline constexpr bool is_out_of_line = false;
template <class Group>
inline constexpr bool is_out_of_line<OutOfLine<Group>> = true;

/// Whether code on a device of kind `from` may access `target`, an address in the memory of the member in `place`.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool may_touch(const Context& ctx, DeviceKind from, Access access,
                                                        const void* target, std::uint32_t place) {
  if (from == DeviceKind::host) return ctx.kind_at(place) == DeviceKind::host || ctx.in_host_half(target);
  if (access == Access::load_store || ctx.guarded_offsets == 0) return true;
  return ctx.kind_at(place) == DeviceKind::gpu && !ctx.in_host_half(target);
}

/// Status of an access that `is_plain` does not permit. With `refuses` a forbidden access is recorded as refused.
BEELINE_HOST_DEVICE inline Status decide(const Context& ctx, Access access, Operation operation, const Reach& target,
                                         std::uint32_t place, bool refuses) {
  if (may_touch(ctx, executor, access, target.local, place)) return Status::ok;
  if (!refuses) return Status::unreachable;
  constexpr CallFault fault =
      executor == DeviceKind::host ? CallFault::cpu_in_gpu_memory : CallFault::gpu_atomic_on_host;
  return refuse(ctx, operation, ctx.member_at(place), {fault, target.bytes, address_bits(target)}, Status::unreachable);
}
/// `decide`, compiled out of line.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status check_slow(const Context& ctx, Access access, Operation operation,
                                                          Reach target, std::uint32_t place, bool refuses) {
  return decide(ctx, access, operation, target, place, refuses);
}

/// Whether the context's constants alone permit an access to memory of the member in `place`.
template <Access access>
[[nodiscard]] BEELINE_HOST_DEVICE bool is_plain(const Context& ctx, const void* local, std::uint32_t place) {
  if constexpr (executor == DeviceKind::host) return ctx.kind_at(place) == DeviceKind::host;
  if constexpr (access == Access::load_store) return true;  // kernels may load from and store to all mapped memory
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
      return check_slow(ctx, access, operation, target, place, group.thread_rank() == 0);
  }
}

/// As `check_access`, for a read-modify-write of a local word by one thread. A word outside all slots is permitted,
/// because nothing is known about it.
BEELINE_HOST_DEVICE inline Status check_local_atomic(const Context& ctx, Operation operation, const Reach& word) {
  const bool is_plain =
      executor == DeviceKind::gpu ? !ctx.is_guarded(word.local) : ctx.kind_of(ctx.rank) == DeviceKind::host;
  if (is_plain || ctx.owner_of(word.local) == no_peer) return Status::ok;
  return check_slow(ctx, Access::atomic, operation, word, ctx.rank - ctx.first_place, true);
}

inline namespace BEELINE_CALLS {

/// The slow path of an operation, for contexts with routes and for memory with restricted atomics: an engine or loads
/// and stores carry out the operation, or it is refused. The function is out of line. It takes its arguments by value,
/// since a variable passed by reference would have to be in memory instead of a register.
template <class Group, class Operation>
BEELINE_COLD BEELINE_HOST_DEVICE typename Operation::Result dispatch_out_of_line(Group group, const Context& ctx,
                                                                                 Operation operation) {
  const Request request = operation.request();
  const AccessToPeer to = ctx.access_to(request.peer);
  if (to.access == PeerAccess::engine) return operation.by_engine(group, ctx);
  const OutOfLine<Group> slow{group};
  Status status = Status::unreachable;
  if (to.access == PeerAccess::direct)
    status = check_access<Operation::access>(slow, ctx, request.operation, operation.reach(), to.place);
  else if (group.thread_rank() == 0)
    status = refuse_route(ctx, request.operation, request.peer);
  if (status != Status::ok) return {status};
  return operation.by_loads(slow, ctx, to.place);
}

/// Finds the route to an operation's peer and carries out the operation. Every operation ends here, after the check of
/// its arguments, with every thread of the group. `operation` is a small structure, since each word of its copy takes a
/// register:
///   Access access, Result        the kind of access; `Status`, or a structure that begins with a status
///   request(), reach()           the request to the peer; the range accessed at the peer, by its address at the caller
///   own_end()                    for a transfer: the start of its source or destination at the calling rank
///   by_loads(group, ctx, place)  loads and stores at the peer's place
///   by_engine(group, ctx)        posts commands
/// Returns the result of `by_loads` or `by_engine`; `unreachable` after one thread of the group has refused the
/// operation. The slow path ends out of line and does not return to the loads and stores below. So the compiler
/// computes a peer's address once, and keeps it in uniform registers if it is the same for all threads.
template <class Group, class Operation>
BEELINE_HOST_DEVICE typename Operation::Result dispatch(const Group& group, const Context& ctx,
                                                        const Operation& operation) {
  const std::uint32_t peer = operation.request().peer;
  const void* const local = operation.reach().local;
  if constexpr (executor == DeviceKind::host) {
    // In a world on several nodes, operations within a node do not take the slow path.
    const AccessToPeer to = ctx.access_to(peer);
    if (to.access != PeerAccess::direct || !is_plain<Operation::access>(ctx, local, to.place)) [[unlikely]]
      return dispatch_out_of_line(group, ctx, operation);
    return operation.by_loads(group, ctx, to.place);
  } else {
    // The check of the peer's memory runs in parallel with the test of routes. That is safe because any number is a
    // valid place.
    const std::uint32_t place = Operation::access == Access::atomic ? peer % max_node_ranks : peer;
    const bool plain = is_plain<Operation::access>(ctx, local, place);
    if ((ctx.has_routes != 0) | !plain) [[unlikely]]
      return dispatch_out_of_line(group, ctx, operation);
    return operation.by_loads(group, ctx, place);
  }
}

/// Checks the arguments (invalid_argument), then dispatches the operation.
template <class Group, class Operation>
BEELINE_HOST_DEVICE typename Operation::Result check_and_dispatch(const Group& group, const Context& ctx,
                                                                  const Operation& operation) {
  const Request request = operation.request();
  Status status = check_call(group, ctx, request.operation, operation.reach(), request.peer);
  if constexpr (requires { operation.own_end(); })
    if (status == Status::ok)
      status = check_own_end(group, ctx, request.operation, operation.own_end(), operation.reach().bytes, request.peer);
  if (status != Status::ok) return {status};
  return dispatch(group, ctx, operation);
}

}  // namespace BEELINE_CALLS

}  // namespace detail

/// Whether the caller may use `atomic_*` and `signal_add` on `target` at `peer`; if not, these operations are refused.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_atomics(const Context& ctx, const void* target, std::uint32_t peer) {
  const AccessToPeer to = ctx.access_to(peer);
  if (to.access != PeerAccess::direct) return to.access == PeerAccess::engine;
  return detail::may_touch(ctx, detail::executor, Access::atomic,
                           ctx.translate(static_cast<const std::byte*>(target), to.place), to.place);
}

/// Whether the caller's loads and stores reach `target` at `peer`. If not, operations may still reach it by an engine;
/// `ctx.access_to(peer)` says whether they do.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_loads_and_stores(const Context& ctx, const void* target,
                                                                   std::uint32_t peer) {
  const AccessToPeer to = ctx.access_to(peer);
  return to.access == PeerAccess::direct &&
         detail::may_touch(ctx, detail::executor, Access::load_store,
                           ctx.translate(static_cast<const std::byte*>(target), to.place), to.place);
}

}  // namespace beeline
