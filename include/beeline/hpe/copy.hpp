// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies between any two pointers of a process.

#include <cstddef>

#include "beeline/hpe/stream.hpp"

namespace beeline::hpe {

/// Copies [from, from + bytes) to [to, to + bytes). Each pointer may be of a GPU, a host device, pinned, managed or
/// pageable memory, or an object; the owners are found from the pointers. No alignment is needed; 0 bytes, and a range
/// onto itself, do nothing.
///
/// One copy engine moves the data where the two devices reach each other. Otherwise, and with BEELINE_PEER_ACCESS=0,
/// data between two devices are staged through buffers of 2 MB in host memory, so that the copies out and in overlap.
///
/// Blocking: returns when the data have arrived. Holds a lock only while it enqueues. Takes no part in the order of any
/// stream. Throws invalid_argument, before anything is touched, for ranges that overlap, a pointer that belongs to
/// nobody, a range with a page that is not mapped, and one that goes beyond its allocation, where that is known;
/// unavailable if a device does not work; deadline, after which the copy may still go on. Blocking copies of pageable
/// memory to and from GPUs are CUDA's own, which do not end at a deadline; the check of pageable memory takes two
/// system calls, and does not see pages that are mapped without the permission that the copy needs. Call it by its
/// qualified name: an unqualified call with pointers to std::byte means std::copy.
/// Source: seed 001, virtual peer DMA.
void copy(void* to, const void* from, std::size_t bytes, const Waiting& waiting = {});

/// As above, in the order of `stream`, of whichever device. Asynchronous: the memory must remain until the stream has
/// passed the copy.
void copy(void* to, const void* from, std::size_t bytes, Stream& stream);

}  // namespace beeline::hpe
