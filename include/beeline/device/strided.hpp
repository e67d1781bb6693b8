// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Strided transfers by the threads that call them (path `peer`): blocks of elements with gaps between them, like the
/// columns of a matrix or the faces of a volume.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/put_get.hpp"

namespace beeline {

/// `count` blocks of `block_length` elements each. A stride is the distance from the first element of a block to the
/// first element of the next block.
struct StridedShape {
  std::size_t count, block_length;                ///< 0: nothing is moved
  std::size_t destination_stride, source_stride;  ///< in elements
};

namespace detail {

/// A strided transfer in bytes.
struct Rows {
  std::byte* to;
  const std::byte* from;
  std::size_t count, bytes;            ///< number of rows, and bytes of a row
  std::size_t to_stride, from_stride;  ///< bytes from the start of a row to the start of the next
};

/// Whether the last block ends inside an address space.
BEELINE_HOST_DEVICE constexpr bool can_span(std::size_t count, std::size_t block_length, std::size_t stride,
                                            std::size_t element_bytes) {
  const std::size_t most = static_cast<std::size_t>(-1) / element_bytes;
  return block_length <= most && (stride == 0 || count - 1 <= (most - block_length) / stride);
}

/// Blocks of the source may overlap; blocks of the destination may not, since their result would be undefined.
BEELINE_HOST_DEVICE constexpr bool is_valid(const StridedShape& shape, std::size_t element_bytes) {
  if (shape.count == 0 || shape.block_length == 0) return true;
  if (shape.count > 1 && shape.destination_stride < shape.block_length) return false;
  return can_span(shape.count, shape.block_length, shape.destination_stride, element_bytes) &&
         can_span(shape.count, shape.block_length, shape.source_stride, element_bytes);
}

/// Which rule an invalid shape breaks.
BEELINE_HOST_DEVICE constexpr Finding finding_in(const StridedShape& shape, std::size_t element_bytes) {
  if (shape.count > 1 && shape.destination_stride < shape.block_length)
    return {CallFault::blocks_overlap, shape.block_length, shape.destination_stride};
  const bool fits_there = can_span(shape.count, shape.block_length, shape.destination_stride, element_bytes);
  return {CallFault::blocks_too_far, shape.count, fits_there ? shape.source_stride : shape.destination_stride};
}

inline namespace BEELINE_CALLS {

/// `ok`, or `invalid_argument` for a bad peer or shape, in every build. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status check_shape(const Group& group, const Context& ctx, Operation operation,
                                       const StridedShape& shape, std::size_t element_bytes, std::uint32_t peer) {
  if (peer < ctx.size && is_valid(shape, element_bytes)) [[likely]]
    return Status::ok;
  const Finding found = peer < ctx.size ? finding_in(shape, element_bytes) : Finding{CallFault::peer, ctx.size, peer};
  return refuse_where_checked(ctx, operation, peer, found, group.thread_rank() == 0);
}

}  // namespace BEELINE_CALLS

/// Copies words of type Word, row by row; each thread has four loads in flight. A thread finds its next word by
/// additions, since a division by the row's length would take longer than the copy.
template <class Word>
BEELINE_COLD BEELINE_HOST_DEVICE void copy_row_words(std::size_t thread, std::size_t threads, const Rows& rows) {
  constexpr std::size_t size = sizeof(Word), in_flight = 4;
  const std::size_t words = rows.bytes / size, step_rows = threads / words, step_words = threads % words;
  std::size_t row = thread / words, word = thread % words;
  BEELINE_NO_UNROLL
  while (row < rows.count) {
    Word held[in_flight];
    std::byte* targets[in_flight];
    for (std::size_t i = 0; i < in_flight; ++i) {
      targets[i] = row < rows.count ? rows.to + row * rows.to_stride + word * size : nullptr;
      if (targets[i] != nullptr) held[i] = machine::load_as<Word>(rows.from + row * rows.from_stride + word * size);
      row += step_rows, word += step_words;
      if (word >= words) ++row, word -= words;
    }
    for (std::size_t i = 0; i < in_flight; ++i)
      if (targets[i] != nullptr) machine::store_as(targets[i], held[i]);
  }
}

/// Copies short rows in the largest words for which addresses, strides and lengths are aligned. A thread copies words
/// of several rows.
BEELINE_HOST_DEVICE inline void copy_short_rows(std::size_t thread, std::size_t threads, const Rows& rows) {
#if BEELINE_ON_GPU
  const auto bits = reinterpret_cast<std::uintptr_t>(rows.to) | reinterpret_cast<std::uintptr_t>(rows.from) |
                    rows.bytes | rows.to_stride | rows.from_stride;
  if ((bits & 15u) == 0)
    copy_row_words<machine::Word16>(thread, threads, rows);
  else if ((bits & 7u) == 0)
    copy_row_words<std::uint64_t>(thread, threads, rows);
  else if ((bits & 3u) == 0)
    copy_row_words<std::uint32_t>(thread, threads, rows);
  else if ((bits & 1u) == 0)
    copy_row_words<std::uint16_t>(thread, threads, rows);
  else
    copy_row_words<std::byte>(thread, threads, rows);
#else
  for (std::size_t row = thread; row < rows.count; row += threads)
    std::memcpy(rows.to + row * rows.to_stride, rows.from + row * rows.from_stride, rows.bytes);
#endif
}

template <class Group>
BEELINE_HOST_DEVICE void copy_rows(const Group& group, Rows rows) {
  if (rows.count == 0 || rows.bytes == 0) return;
  if (rows.count == 1) rows.to_stride = rows.from_stride = rows.bytes;
  if (rows.to_stride == rows.bytes && rows.from_stride == rows.bytes)
    rows = {rows.to, rows.from, 1, rows.count * rows.bytes, 0, 0};
  // A row that is long enough to occupy the whole group is copied by itself.
  constexpr std::size_t long_share = is_out_of_line<Group> && BEELINE_ON_GPU ? 0
                                     : BEELINE_ON_GPU                        ? 4 * sizeof(machine::Word16)
                                                                             : 4096;
  if (rows.bytes < long_share * group.size() && rows.count > 1) {
    copy_short_rows(group.thread_rank(), group.size(), rows);
    return;
  }
  BEELINE_NO_UNROLL
  for (std::size_t row = 0; row < rows.count; ++row)
    copy_bytes(group, rows.to + row * rows.to_stride, rows.from + row * rows.from_stride, rows.bytes);
}

template <class T>
BEELINE_HOST_DEVICE Rows rows_of(T* destination, const T* source, const StridedShape& shape) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return {reinterpret_cast<std::byte*>(destination),
          reinterpret_cast<const std::byte*>(source),
          shape.count,
          shape.block_length * sizeof(T),
          shape.destination_stride * sizeof(T),
          shape.source_stride * sizeof(T)};
}

/// The range from the first element of the first block to the last element of the last block.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Reach reach_of_blocks(const T* first, const StridedShape& shape, std::size_t stride) {
  const bool none = shape.count == 0 || shape.block_length == 0;
  return reach_of(first, none ? 0 : (shape.count - 1) * stride + shape.block_length);
}

inline namespace BEELINE_CALLS {

/// A strided transfer, in the form that `check_and_dispatch` of access.hpp takes.
template <bool puts, class T>
struct MoveBlocks {
  static constexpr Access access = Access::load_store;
  using Result = Status;
  T* destination;
  const T* source;
  StridedShape shape;
  std::uint32_t peer;
  QueueId queue;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const { return move_request(puts, peer); }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const {
    return puts ? reach_of_blocks(destination, shape, shape.destination_stride)
                : reach_of_blocks(source, shape, shape.source_stride);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE const void* own_end() const { return puts ? source : destination; }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group& group, const Context& ctx, std::uint32_t place) const {
    if constexpr (puts)
      copy_rows(group, rows_of(ctx.translate(destination, place), source, shape));
    else
      copy_rows(group, rows_of(destination, ctx.translate(source, place), shape));
    return Status::ok;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    const std::size_t to_stride = shape.destination_stride * sizeof(T), from_stride = shape.source_stride * sizeof(T);
    const T *remote = puts ? destination : source, *local = puts ? source : destination;
    return move_by_engine(group, ctx, request(), queue, remote,
                          {local, shape.count, shape.block_length * sizeof(T), puts ? to_stride : from_stride,
                           puts ? from_stride : to_stride});
  }
};

template <bool puts, class Group, class T>
BEELINE_HOST_DEVICE Status move_blocks(const Group& group, const Context& ctx, const MoveBlocks<puts, T>& operation) {
  const Status status =
      check_shape(group, ctx, operation.request().operation, operation.shape, sizeof(T), operation.peer);
  return status == Status::ok ? check_and_dispatch(group, ctx, operation) : status;
}

}  // namespace BEELINE_CALLS

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Copies the shape's blocks from local `source` to `destination` on `peer`; the gaps between the blocks are unchanged.
///   destination  symmetric address of the first block; source local address of the first block, reusable when every
///                thread has returned; if an engine carries the put, after `flush`; blocks of the source may overlap
///                (stride 0: one block many times)
/// Every thread of `group` calls it, with the same arguments. Does not wait for the peer. Source and destination must
/// not overlap.
/// Completion: visible at `peer` after a later `signal` of this queue, or `quiet`.
/// Returns as `put`; invalid_argument also for a peer outside the team, a destination stride below the block length, or
/// blocks beyond the end of the address space, with nothing touched, in every build (see access.hpp). Source: OpenSHMEM
/// 1.5 shmem_iput (blocks of one element), 1.6 shmem_ibput.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status put_strided(const Group& group, const Context& ctx, T* destination,
                                                     const T* source, const StridedShape& shape, std::uint32_t peer,
                                                     QueueId queue = {}) {
  return detail::move_blocks(group, ctx, detail::MoveBlocks<true, T>{destination, source, shape, peer, queue});
}

/// Copies the shape's blocks from `source` on `peer` to local `destination`.
///   source  symmetric address of the first block; blocks may overlap;  destination  local address of the first block
/// Every thread of `group` calls it. Blocking: each thread's share has arrived when the thread returns, and all data
/// after `group.sync()`. If the peer writes the data concurrently, acquire them first (`wait` for their signal, or
/// `barrier`). Returns as `put_strided`. Source: OpenSHMEM 1.5 shmem_iget, 1.6 shmem_ibget.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status get_strided(const Group& group, const Context& ctx, T* destination,
                                                     const T* source, const StridedShape& shape, std::uint32_t peer) {
  return detail::move_blocks(group, ctx, detail::MoveBlocks<false, T>{destination, source, shape, peer, QueueId{}});
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
