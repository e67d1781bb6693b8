// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The work of a device: its kernels, CUB's sort and merge on GPUs, the standard library's on host devices.

#include <cstddef>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"
#include "problem.hpp"

namespace merge_sort {

/// A sorted run in one memory.
struct Run {
  const Key* keys;
  std::size_t count;
};

/// A sorted sequence in the memory of several devices.
struct Sequence {
  const Key* keys[max_parts];        ///< of each part
  std::size_t first[max_parts + 1];  ///< number of its first key in the sequence; behind the last: their number
  std::size_t parts;

  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t count() const { return first[parts]; }
  /// The part that holds a key.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t part_of(std::size_t index) const {
    std::size_t part = 0;
    while (part + 1 < parts && index >= first[part + 1]) ++part;
    return part;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE const Key* address(std::size_t index) const {
    const std::size_t part = part_of(index);
    return keys[part] + (index - first[part]);
  }
};

/// How many of the first `position` keys of the merged sequence come from `left`; of equal keys, those of `left` come
/// first. `read(address)` returns a key. Source: merge path (Odeh, Green, Mwassi, Shmueli, Birk, 2012).
template <class Read>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t pivot(const Sequence& left, const Sequence& right, std::size_t position,
                                                    const Read& read) {
  std::size_t low = position > right.count() ? position - right.count() : 0;
  std::size_t high = position < left.count() ? position : left.count();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (read(left.address(middle)) <= read(right.address(position - 1 - middle)))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Enqueues a fill of `count` keys with those of the problem from key `first` on.
void enqueue_keys(beeline::hpe::Stream& stream, Key* keys, const Problem& problem, Range range);

/// Enqueues a search, by a kernel of the stream's device that reads keys wherever they are, for two pivots.
///   pivots  [2] in pinned memory
void enqueue_search(beeline::hpe::Stream& stream, const Sequence& left, const Sequence& right, const Range& output,
                    std::size_t* pivots);

/// Bytes of the scratch memory that the next two functions need for `count` keys.
[[nodiscard]] std::size_t scratch_bytes(beeline::hpe::Device device, std::size_t count);
/// Enqueues a sort of `count` keys of either buffer; returns the buffer that will hold the result: `keys`, which holds
/// them now, or `other`.
[[nodiscard]] Key* enqueue_sort(beeline::hpe::Stream& stream, Key* keys, Key* other, std::size_t count,
                                const beeline::hpe::DeviceMemory& scratch);
/// Enqueues a merge of two runs, either of which may be empty.
void enqueue_merge(beeline::hpe::Stream& stream, const Run& left, const Run& right, Key* merged,
                   const beeline::hpe::DeviceMemory& scratch);

}  // namespace merge_sort
