// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Bulk transfers (path `bulk`, TMA): one thread of a block moves large pieces through the block's shared memory. A few
/// blocks suffice to fill a link; the path `peer` needs every multiprocessor for that.
///
/// The thread starts loads into the stages of a ring ahead of time, and stores each piece as soon as it has arrived.
/// This needs instructions of GPUs of compute capability 9.0 or more. On other GPUs, and on host ranks, the same calls
/// copy by loads and stores of all the block's threads.
///
/// Order: the last wait (`cp.async.bulk.wait_group`, without `.read`) ends when the writes are complete and visible to
/// the thread that issued them. A completion observed in this way includes the fence between the proxies (PTX ISA,
/// "Asynchronous copy: async proxy"). From then on the writes are ordered like the thread's own stores: a later release
/// (`signal`, `quiet`) covers them. Before the first read, `fence.proxy.async` makes the data that the block stored or
/// acquired visible to the bulk copies.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/impl/bulk_machine.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// Lowest compute capability (90 means 9.0) of GPUs that copy in bulk.
inline constexpr int bulk_compute_capability = 90;

/// Pieces in flight through a block, and the bytes of each. One multiprocessor stores 46 GB/s to a peer (measured), and
/// a piece takes 2 us from the start of its load to the end of its store. The product, 92 KB, has to be in flight.
inline constexpr std::uint32_t bulk_stages = 8, bulk_stage_bytes = 16 << 10;

/// The buffer of a block's bulk transfers (128 KB). It is in dynamic shared memory, since static shared memory is
/// limited to 48 KB. A kernel that `launch` starts reserves it with `static constexpr std::size_t shared_bytes =
/// sizeof(BulkBuffer)`, and gets its address from `bulk_buffer()`.
struct alignas(128) BulkBuffer {
  std::byte stages[bulk_stages][bulk_stage_bytes];
  std::uint64_t loaded[bulk_stages];  ///< mbarriers
};

/// The start of the calling block's dynamic shared memory; nullptr on a host rank, where transfers need no buffer.
[[nodiscard]] BEELINE_HOST_DEVICE inline BulkBuffer* bulk_buffer() {
  return reinterpret_cast<BulkBuffer*>(machine::dynamic_shared_memory());
}

namespace detail {

/// The copies that the block of a port makes.
template <class BlockGroup>
class BulkCopies {
 public:
  BEELINE_HOST_DEVICE BulkCopies(const BlockGroup& block, const Context& ctx, BulkBuffer* buffer)
      : block_(block), ctx_(ctx), buffer_(buffer) {
#if BEELINE_HAS_BULK_COPIES
    block_.sync();  // all threads have ended their other uses of the buffer
    if (block_.thread_rank() == 0) {
      for (std::uint64_t& barrier : buffer_->loaded) machine::make_bulk_barrier(&barrier);
      machine::fence_async_proxy();
    }
#endif
  }
  BEELINE_HOST_DEVICE ~BulkCopies() {
#if BEELINE_HAS_BULK_COPIES
    if (block_.thread_rank() != 0) return;
    for (std::uint64_t& barrier : buffer_->loaded) machine::end_bulk_barrier(&barrier);
#endif
  }
  BulkCopies(const BulkCopies&) = delete;
  BulkCopies& operator=(const BulkCopies&) = delete;

  [[nodiscard]] BEELINE_HOST_DEVICE const BlockGroup& block() const { return block_; }
  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return ctx_; }

  /// Copies between the memories of this rank and of the member in `place`, in either direction.
#if BEELINE_HAS_BULK_COPIES
  BEELINE_HOST_DEVICE void move(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t place) {
    constexpr std::size_t grain = 16;
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    const std::size_t head = (grain - address) & (grain - 1);
    const bool alike = ((address ^ reinterpret_cast<std::uintptr_t>(from)) & (grain - 1)) == 0;
    const bool in_host_memory =
        ctx_.kind_at(place) == DeviceKind::host || ctx_.in_host_half(to) || ctx_.in_host_half(from);
    const unsigned thread = block_.thread_rank(), threads = block_.size();
    if (!alike || bytes < head + grain || in_host_memory) {
      detail::copy_unaligned(thread, threads, to, from, bytes);
      return;
    }
    block_.sync();  // the fence below covers what any thread stored or acquired before this call
    const std::size_t body = (bytes - head) & ~(grain - 1), tail = head + body;
    detail::copy_words<std::byte>(thread, threads, to, from, head);
    detail::copy_words<std::byte>(thread, threads, to + tail, from + tail, bytes - tail);
    if (thread != 0) return;
    machine::fence_async_proxy();
    move_through_stages(to + head, from + head, body);
    machine::await_bulk_stores();
  }
#else
  BEELINE_HOST_DEVICE void move(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t) {
    detail::copy_bytes(block_, to, from, bytes);
  }
#endif

 private:
#if BEELINE_HAS_BULK_COPIES
  /// Each wait here is for this thread's own copy, which, like a load, ends with the data or a fault. No wait depends
  /// on another rank, so there is no deadline.
  BEELINE_HOST_DEVICE void move_through_stages(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::size_t loaded = 0, stored = 0;
    Turn load_turn = turn_;
    const auto load_next = [&] {
      const std::uint32_t piece = piece_of(bytes - loaded);
      machine::bulk_load(buffer_->stages[load_turn.stage], from + loaded, piece, &buffer_->loaded[load_turn.stage]);
      loaded += piece;
      load_turn.pass();
    };
    BEELINE_NO_UNROLL
    for (std::uint32_t i = 0; i < bulk_stages && loaded < bytes; ++i) load_next();
    while (stored < bytes) {
      const std::uint32_t piece = piece_of(bytes - stored);
      while (!machine::bulk_loaded(&buffer_->loaded[turn_.stage], turn_.parity)) {
      }
      machine::bulk_store(to + stored, buffer_->stages[turn_.stage], piece);
      stored += piece;
      turn_.pass();
      // Refills the previous stage while the store that has just begun is in flight.
      if (stored <= bulk_stage_bytes || loaded == bytes) continue;
      machine::await_earlier_bulk_reads();
      load_next();
    }
  }

  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t piece_of(std::size_t bytes) {
    return bytes < bulk_stage_bytes ? static_cast<std::uint32_t>(bytes) : bulk_stage_bytes;
  }

  /// The next stage, and the parity of its barrier's phase.
  struct Turn {
    std::uint32_t stage = 0, parity = 0;
    BEELINE_HOST_DEVICE void pass() {
      if (++stage < bulk_stages) return;
      stage = 0;
      parity ^= 1u;
    }
  };
#endif

  BlockGroup block_;
  const Context& ctx_;
  [[maybe_unused]] BulkBuffer* buffer_;
#if BEELINE_HAS_BULK_COPIES
  Turn turn_;
#endif
};

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Transfers by one block. `BlockGroup` is `Block` on a GPU, `HostTeam` on a host rank.
///
/// Speed: bulk copies need addresses in GPU memory that are equal modulo 16. For other addresses, host memory included,
/// the block's threads copy. Source and destination are in global memory, not in a kernel's shared or local memory.
template <class BlockGroup>
class BulkPort {
  static_assert(!std::is_same_v<BlockGroup, Thread> && !std::is_same_v<BlockGroup, Warp>, "a whole block's");

 public:
  /// Every thread of `block` calls it. The port uses `buffer` until the port is destroyed and the block has called
  /// `sync()`.
  BEELINE_HOST_DEVICE BulkPort(const BlockGroup& block, const Context& ctx, BulkBuffer* buffer)
      : copies_(block, ctx, checked(ctx, buffer)) {}
  BulkPort(const BulkPort&) = delete;
  BulkPort& operator=(const BulkPort&) = delete;

  /// Copies `count` elements from local `source` to `destination` on `peer`.
  ///   destination  [count] symmetric address;  source  [count] local, reusable when every thread returned
  /// Every thread of the block calls it, with the same arguments. Waits for its own copies, not for the peer. Source
  /// and destination must not overlap.
  /// Completion: visible at `peer` after a later `signal` of this queue, or `quiet`.
  /// Returns as `beeline::put`. Source: OpenSHMEM 1.5 put.
  template <class T>
  BEELINE_HOST_DEVICE Status put(T* destination, const T* source, std::size_t count, std::uint32_t peer,
                                 QueueId queue = {}) {
    if (!copies_.context().is_direct(peer)) [[unlikely]]
      return beeline::put(copies_.block(), copies_.context(), destination, source, count, peer, queue);
    const Status status = check(Operation::put, detail::reach_of(destination, count), source, peer);
    if (status == Status::ok) move(copies_.context().translate(destination, place(peer)), source, count, place(peer));
    return status;
  }

  /// Copies `count` elements from `source` on `peer` to local `destination`.
  ///   source  [count] symmetric address;  destination  [count] local
  /// Every thread of the block calls it. All data have arrived after the block's next `sync()`. If the peer writes the
  /// data concurrently, acquire them first (`wait` for their signal, or `barrier`).
  /// Returns as `put`. Source: OpenSHMEM 1.5 get.
  template <class T>
  [[nodiscard]] BEELINE_HOST_DEVICE Status get(T* destination, const T* source, std::size_t count, std::uint32_t peer) {
    if (!copies_.context().is_direct(peer)) [[unlikely]]
      return beeline::get(copies_.block(), copies_.context(), destination, source, count, peer);
    const Status status = check(Operation::get, detail::reach_of(source, count), destination, peer);
    if (status == Status::ok) move(destination, copies_.context().translate(source, place(peer)), count, place(peer));
    return status;
  }

  /// `put`, then sets `signal` on `peer` to `value`: a thread there that acquires the signal's value sees the data.
  ///   signal  symmetric address, 8-byte aligned
  /// Every thread of the block calls it. Returns as `put`. Source: OpenSHMEM 1.5 put_signal; GASPI write_notify.
  template <class T>
  BEELINE_HOST_DEVICE Status put_signal(T* destination, const T* source, std::size_t count, std::uint64_t* signal,
                                        std::uint64_t value, std::uint32_t peer, QueueId queue = {}) {
    const Context& ctx = copies_.context();
    if (!ctx.is_direct(peer)) [[unlikely]]
      return beeline::put_signal(copies_.block(), ctx, destination, source, count, signal, value, peer, queue);
    const detail::Reach data = detail::reach_of(destination, count), word = detail::reach_of_word(signal);
    Status status = check(Operation::put, data, source, peer);
    if (status == Status::ok) status = check(Operation::signal, word, signal, peer);
    if (status != Status::ok) return status;
    move(ctx.translate(destination, place(peer)), source, count, place(peer));
    detail::set_signal(copies_.block(), ctx, signal, value, place(peer), Order::memory);
    return status;
  }

 private:
  /// Checks the arguments and the access of a call for a peer that `is_direct`.
  ///   own  start of the source or destination at this rank
  [[nodiscard]] BEELINE_HOST_DEVICE Status check(Operation operation, const detail::Reach& reach, const void* own,
                                                 std::uint32_t peer) const {
    Status status = detail::check_call(copies_.block(), copies_.context(), operation, reach, peer);
    if (status == Status::ok)
      status = detail::check_own_end(copies_.block(), copies_.context(), operation, own, reach.bytes, peer);
    if (status != Status::ok) return status;
    return detail::check_access<Access::load_store>(copies_.block(), copies_.context(), operation, reach, place(peer));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t place(std::uint32_t peer) const {
    return peer - copies_.context().first_place;
  }

  template <class T>
  BEELINE_HOST_DEVICE void move(T* to, const T* from, std::size_t count, std::uint32_t place) {
    static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
    copies_.move(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), count * sizeof(T), place);
  }
  /// Returns `buffer`; refuses a null buffer if the transfers need one.
  [[nodiscard]] BEELINE_HOST_DEVICE static BulkBuffer* checked([[maybe_unused]] const Context& ctx,
                                                               BulkBuffer* buffer) {
#if BEELINE_HAS_BULK_COPIES
    if (detail::checks_operations && buffer == nullptr)
      detail::stop_call(ctx, Operation::put, ctx.rank, {CallFault::no_buffer, sizeof(BulkBuffer), 0});
#endif
    return buffer;
  }

  detail::BulkCopies<BlockGroup> copies_;
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
