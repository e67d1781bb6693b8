// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// GASPI's device library over a world of Beeline: for C++ programs whose kernels name memory by segment and offset,
/// and that do not call the C functions of GASPI.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/gaspi/endpoint.hpp"
#include "beeline/host/world.hpp"

namespace beeline::gaspi {

/// Numbers of the objects of an endpoint; the same on all ranks.
struct EndpointSize {
  std::uint32_t segments = 1;
  std::uint32_t notifications = 64;  ///< of each segment
  std::uint32_t queues = 8;          ///< 2 to `max_queues`
};

/// The endpoint of a rank, with segments that lie in memory of its world, and their flags. Kernels see a change of the
/// segments if they start after `publish`.
class WorldEndpoint {
 public:
  /// Collective.
  ///   flags  where waiters poll: Heap::symmetric for kernels, Heap::pinned for CPU threads. In a world with GPU ranks
  ///          and host ranks always host memory
  /// Throws invalid_argument for no segments or a number of queues out of range, no_resource if a heap is full.
  explicit WorldEndpoint(World& world, const EndpointSize& size = {}, Heap flags = Heap::symmetric)
      : world_(world), size_(checked(size)), entries_(world, std::size_t{size.segments} * ranks()), copy_(world, 1),
        flags_(world, std::size_t{size.segments} * size.notifications, flags), table_(entries_.count()) {
    const bool is_host = !world.device().is_gpu() || world.mixed() || flags == Heap::pinned;
    for (std::size_t i = 0; i < table_.size(); ++i)
      table_[i] = {nullptr, flag(static_cast<std::uint32_t>(i / ranks()), 0), 0, PartAccess::none, is_host ? 1u : 0u};
    publish();
  }

  /// Makes symmetric memory a segment, whose parts have the same size on all ranks.
  ///   memory  symmetric address
  void set(std::uint32_t segment, void* memory, std::size_t bytes) {
    for (int rank = 0; rank < world_.size(); ++rank) set(segment, rank, memory, bytes, PartAccess::symmetric);
  }
  /// Makes a segment of the world a segment of the endpoint.
  void set(std::uint32_t segment, const Segment& memory) {
    for (int rank = 0; rank < world_.size(); ++rank) {
      const SegmentPart& part = memory.parts[static_cast<std::size_t>(rank)];
      void* const symmetric = part.bytes == 0 ? nullptr : world_.symmetric_address(part.address);
      set(segment, rank, symmetric, part.bytes, part.bytes == 0 ? PartAccess::none : PartAccess::symmetric);
    }
  }
  /// Sets the part of one rank. Throws invalid_argument for a segment or rank out of range.
  void set(std::uint32_t segment, int rank, void* data, std::size_t bytes, PartAccess access) {
    SegmentEntry& entry = entry_of(segment, rank);
    entry.data = static_cast<std::byte*>(data), entry.bytes = bytes, entry.access = access;
  }
  /// Copies the segments to the rank's device. No kernel may use them meanwhile.
  void publish() {
    world_.copy(entries_.data(), table_.data(), entries_.bytes());
    const Endpoint endpoint = this->endpoint();
    world_.copy(copy_.data(), &endpoint, sizeof endpoint);
  }

  /// For kernels, which take it by value as `const __grid_constant__ Endpoint`.
  [[nodiscard]] Endpoint endpoint() const { return {world_.context(), table()}; }
  /// For kernels that `launch` starts, which make an `EndpointView` of it and of the context that `launch` passes.
  [[nodiscard]] EndpointTable table() const {
    return {entries_.data(), size_.segments, size_.notifications, size_.queues};
  }
  /// A copy of `endpoint` in memory of the rank's device. Calls with it take longer than with a view (endpoint.hpp).
  [[nodiscard]] const Endpoint* on_device() const { return copy_.data(); }
  /// The flag of a notification, a symmetric address.
  [[nodiscard]] std::uint64_t* flag(std::uint32_t segment, std::uint32_t notification) const {
    return flags_.data() + std::size_t{segment} * size_.notifications + notification;
  }
  /// Collective. Sets all flags of this rank to 0, between two phases: no notification may be on its way before, and
  /// none is sent before all ranks have returned.
  void reset_flags() {
    world_.barrier();
    world_.stream().fill(flags_.data(), 0, flags_.bytes());
    world_.synchronize();
    world_.barrier();
  }

 private:
  static EndpointSize checked(const EndpointSize& size) {
    require(size.segments > 0 && size.notifications > 0 && size.queues >= 2 && size.queues <= max_queues,
            Status::invalid_argument,
            "an endpoint with " + std::to_string(size.segments) + " segments of " + std::to_string(size.notifications) +
                " notifications and " + std::to_string(size.queues) + " queues; at least 1, 1, and 2 to 32");
    return size;
  }
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(world_.size()); }
  SegmentEntry& entry_of(std::uint32_t segment, int rank) {
    require(segment < size_.segments && rank >= 0 && rank < world_.size(), Status::invalid_argument,
            "segment " + std::to_string(segment) + " of rank " + std::to_string(rank) + ": the endpoint has " +
                std::to_string(size_.segments) + " segments of " + std::to_string(world_.size()) + " ranks");
    return table_[segment * ranks() + static_cast<std::size_t>(rank)];
  }

  World& world_;
  const EndpointSize size_;
  SymmetricArray<SegmentEntry> entries_;  ///< [segments][ranks]
  SymmetricArray<Endpoint> copy_;
  Signals flags_;                    ///< [segments][notifications]
  std::vector<SegmentEntry> table_;  ///< what `publish` copies to `entries_`
};

}  // namespace beeline::gaspi
