// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A block's context with the operations of SHMEM, over a command queue: `p`, `put_nbi`, `get_nbi`, `wait_until`,
/// `quiet`. On a GPU its state is in the block's shared memory, so that it takes only two registers of each thread.
///
///   struct Kernel {
///     static constexpr std::size_t shared_bytes = sizeof(ShmemState);
///     template <class Grid> ... operator()(Grid& grid, const Context& ctx, CommandQueuesView channel, ...) const {
///       ShmemContext shmem(grid.block(), ctx, channel.queue(grid.block_rank()));
///       if (grid.block().thread_rank() == 0) shmem.p(word, 7, peer);
///       shmem.quiet();
///
/// The functions return and refuse as the functions of control/post.hpp that they call.
/// Source: seed 003, ComP-Net's SHMEM with a context for each work-group; OpenSHMEM 1.5, shmem_ctx_*.

#include <cstdint>
#include <type_traits>

#include "beeline/control/post.hpp"
#include "beeline/device/impl/bulk_machine.hpp"

namespace beeline {

/// The state of a context.
struct ShmemState {
  Context context;
  CommandQueue queue;
};

/// The context of one block. Blocks may share a queue: `quiet` then waits for the earlier posts of all of them.
template <class BlockGroup>
class ShmemContext {
 public:
  /// Every thread of the block calls it, with the same arguments.
  ///   shared  on a GPU, the state's address in the block's shared memory, aligned to 16 bytes; nullptr: at the start
  ///           of the dynamic shared memory, of which the kernel declares `shared_bytes`
  BEELINE_HOST_DEVICE ShmemContext(const BlockGroup& block, const Context& context, CommandQueue queue,
                                   ShmemState* shared = nullptr)
      : block_(block) {
    if constexpr (detail::executor == DeviceKind::host) {
      own_ = {context, queue};
    } else {
      shared_ = shared != nullptr ? shared : reinterpret_cast<ShmemState*>(machine::dynamic_shared_memory());
      block.sync();
      if (block.thread_rank() == 0) *shared_ = {context, queue};
      block.sync();
    }
  }

  /// Stores `value` into `*destination` on `peer`. Any one thread calls it. Source: shmem_p.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE Status p(T* destination, std::type_identity_t<T> value, std::uint32_t peer) const {
    static_assert(sizeof(T) <= max_inline_bytes, "one element, which travels in the command");
    return post_put(Thread{}, state().context, destination, &value, 1, peer, state().queue);
  }
  /// Copies `count` elements to `peer`; `source` may be written again after `quiet`. Every thread of the block calls
  /// it. Source: shmem_put_nbi.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE Status put_nbi(T* destination, const T* source, std::size_t count,
                                                   std::uint32_t peer) const {
    return post_put(block_, state().context, destination, source, count, peer, state().queue);
  }
  /// Copies `count` elements from `peer`, which have arrived after `quiet`. Every thread of the block calls it.
  /// Source: shmem_get_nbi.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE Status get_nbi(T* destination, const T* source, std::size_t count,
                                                   std::uint32_t peer) const {
    return post_get(block_, state().context, destination, source, count, peer, state().queue);
  }
  /// Blocks until the comparison of this rank's `*word` with `value` holds; data that were put before the word are then
  /// visible to the block. Every thread of the block calls it. Source: shmem_wait_until.
  [[nodiscard]] BEELINE_HOST_DEVICE Status wait_until(const std::uint64_t* word, Compare compare,
                                                      std::uint64_t value) const {
    return wait(block_, state().context, word, compare, value);
  }
  /// Blocks until everything posted to the queue before is visible at its target. Every thread of the block calls it.
  /// Source: shmem_quiet.
  [[nodiscard]] BEELINE_HOST_DEVICE Status quiet() const {
    return beeline::quiet(block_, state().context, state().queue);
  }

 private:
  struct Nothing {};
  [[nodiscard]] BEELINE_HOST_DEVICE const ShmemState& state() const {
    if constexpr (detail::executor == DeviceKind::host)
      return own_;
    else
      return *shared_;
  }

  const BlockGroup& block_;
  std::conditional_t<detail::executor == DeviceKind::host, ShmemState, Nothing> own_;
  ShmemState* shared_ = nullptr;
};

}  // namespace beeline
