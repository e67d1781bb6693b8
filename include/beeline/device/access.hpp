// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Who may touch what directly, in worlds that mix GPU and host ranks:
///
/// | code on a | GPU memory          | host memory                                        |
/// |-----------|---------------------|----------------------------------------------------|
/// | GPU       | load, store, atomic | load, store; atomics only among GPUs (see `mixed`) |
/// | CPU       | nothing             | load, store, atomic                                |
///
/// Operations that this forbids touch nothing and are refused, in every build: the refusal is recorded, the team is
/// aborted, since somebody may wait for what does not come, and the host throws an error that names rank, operation and
/// peer. `World::copy` and streams reach everything. Source: seed 000, 6.3; libcu++, hostNativeAtomicSupported.

#include <cstdint>

#include "beeline/device/wait.hpp"

namespace beeline {

/// What an operation does to a word.
enum class Access : std::uint32_t { load_store, atomic };

namespace detail {

/// What this code is compiled for.
inline constexpr DeviceKind executor = BEELINE_ON_GPU ? DeviceKind::gpu : DeviceKind::host;

/// Whether code on `from` may do this to `target`, an address in `peer`'s memory.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool may_touch(const Context& ctx, DeviceKind from, Access access,
                                                        const void* target, std::uint32_t peer) {
  if (from == DeviceKind::host) return ctx.kind_of(peer) == DeviceKind::host || ctx.in_host_half(target);
  if (access == Access::load_store || !ctx.mixed) return true;
  return ctx.kind_of(peer) == DeviceKind::gpu && !ctx.in_host_half(target);
}

/// Decides where members differ in kind, out of the way of worlds in which they do not; `refuses`: records it too.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status judge(const Context& ctx, Access access, Operation operation,
                                                     const void* target, std::uint32_t peer, bool refuses) {
  if (may_touch(ctx, executor, access, target, peer)) return Status::ok;
  return refuses ? refuse(ctx, operation, peer, Status::unreachable) : Status::unreachable;
}

/// `ok`, or `unreachable` after one thread of the group has refused the operation. Every thread calls it.
template <Access access, class Group>
BEELINE_HOST_DEVICE Status admit(const Group& group, const Context& ctx, Operation operation, const void* target,
                                 std::uint32_t peer) {
  if constexpr (executor == DeviceKind::gpu && access == Access::load_store) {
    return Status::ok;  // what is mapped, kernels load and store
  } else {
    const bool is_plain = executor == DeviceKind::gpu ? !ctx.mixed : ctx.kind_of(peer) == DeviceKind::host;
    return is_plain ? Status::ok : judge(ctx, access, operation, target, peer, group.thread_rank() == 0);
  }
}

}  // namespace detail

/// Whether `atomic_*` and `signal_add` on `target` at `peer` work from here; otherwise they are refused.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_atomics(const Context& ctx, const void* target, std::uint32_t peer) {
  return detail::may_touch(ctx, detail::executor, Access::atomic, ctx.at(static_cast<const std::byte*>(target), peer),
                           peer);
}

/// Whether this code may load and store `target` at `peer`: `put`, `get`, `signal`, or through `ctx.at`.
///   target  symmetric address
[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_loads_and_stores(const Context& ctx, const void* target,
                                                                   std::uint32_t peer) {
  return detail::may_touch(ctx, detail::executor, Access::load_store,
                           ctx.at(static_cast<const std::byte*>(target), peer), peer);
}

}  // namespace beeline
