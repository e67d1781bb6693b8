// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The endpoint of a GASPI process: what its kernels need to name segments by id and offset. `gaspi_gpu_endpoint`
/// (GASPI_GPU.h) fills it in.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/command.hpp"
#include "beeline/device/context.hpp"

namespace beeline::gaspi {

/// How the calling rank's device reaches one rank's part of a segment.
enum class PartAccess : std::uint32_t {
  none,       ///< there is no part, it is not registered for this rank, or copies of the host alone reach it
  symmetric,  ///< by operations that name the part by its symmetric address, on any node
  in_place    ///< by loads and stores at the part's address in this process: memory that its owner had before
};

/// One rank's part of a segment. Written by the host while no kernel uses the segment.
struct alignas(16) SegmentEntry {
  std::byte* data;           ///< first byte: symmetric address or address in this process
  std::uint64_t* flags;      ///< symmetric address of the flag of notification 0, a 64-bit signal
  std::uint64_t bytes;       ///< 0: the rank has no part
  PartAccess access;         ///< how `data` is reached
  std::uint32_t host_flags;  ///< 1: the flags lie in host memory, 0: in memory of the owner's GPU
};
static_assert(std::is_trivially_copyable_v<SegmentEntry> && sizeof(SegmentEntry) == 32);

/// The segments of an endpoint, and the numbers of its segments, notifications and queues.
struct EndpointTable {
  const SegmentEntry* entries;  ///< [segments][ranks], at least one, in memory that the rank's device reads
  std::uint32_t segments;       ///< ids of segments are less than this
  std::uint32_t notifications;  ///< ids of notifications are less than this
  std::uint32_t queues;         ///< numbers of queues are less than this; 2 to `max_queues`
};

/// A rank as the end of communication: all kernels of the rank use the same endpoint, also at the same time, and from
/// any block. Kernels take it by value, as `const __grid_constant__ Endpoint`. Its ranks are those of
/// `gaspi_proc_rank`. Source: seed 000, section 5.7.1.
struct Endpoint {
  Context context;  ///< of the world
  EndpointTable table;
};
static_assert(std::is_trivially_copyable_v<Endpoint> && std::is_standard_layout_v<Endpoint>);

/// An entry of the table that a thread has read.
struct KnownEntry {
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t index = none;  ///< in `EndpointTable::entries`
  SegmentEntry entry{};
};

/// An endpoint as the functions of device.hpp take it: an `Endpoint`, or, in a kernel that `launch` starts, the context
/// that it passes and a table. Context and table are then arguments of the kernel, in constant memory; an `Endpoint` in
/// global memory costs several dependent loads more in each call.
///
/// A thread of a GPU that makes a view once, for several calls, reads an entry of the table again only if a call names
/// another segment or rank than the call before. Each thread has a view of its own.
struct EndpointView {
  BEELINE_HOST_DEVICE EndpointView(const Endpoint& endpoint) : context(endpoint.context), table(endpoint.table) {}
  ///   of     of the world; outlives the view
  BEELINE_HOST_DEVICE EndpointView(const Context& of, const EndpointTable& segments) : context(of), table(segments) {}

  const Context& context;
  EndpointTable table;
  // What this thread has read last: of the ends of writes and notifications, and of the part on which it waits. Kept on
  // GPUs alone, since threads of a host rank may share a view. Valid as long as the view: the table does not change
  // while kernels use it.
  mutable KnownEntry source, destination, awaited;
};

/// A position in a segment.
struct SegmentOffset {
  std::uint32_t segment;
  std::uint64_t bytes;  ///< from the start of the rank's part
};

/// A notification and its value, which is not 0.
struct Notification {
  std::uint32_t id, value;
};

}  // namespace beeline::gaspi
