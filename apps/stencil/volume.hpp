// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The volume in the devices' own memory, for the methods that name copies or addresses themselves.

#include <optional>
#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"
#include "fields.hpp"
#include "problem.hpp"

namespace stencil {

/// The neighbour along z: below, above.
inline constexpr unsigned sides = 2;
[[nodiscard]] inline unsigned opposite(unsigned side) { return 1 - side; }

/// A volume on devices.
struct Setup {
  apps::Devices devices;
  Size size;
};

/// What a device computes, and the streams that do it. The planes at the edges have a stream of their own, so that
/// they travel while the inner planes are computed.
struct Domain {
  Domain(beeline::hpe::Device device, const Size& size, const Slab& part);

  Slab slab;
  Shape shape;
  beeline::hpe::Stream edges, bulk;

  /// Enqueues a step on both streams.
  void enqueue(const Planes& planes);
  /// Enqueues a step as one kernel, on the stream of the edges.
  void enqueue_all(const Planes& planes);
  /// Makes each stream wait for what the other one has now: a step follows the step before.
  void join_streams();
  void synchronize();
};

class Volume {
 public:
  explicit Volume(const Setup& setup);

  [[nodiscard]] std::size_t parts() const { return domains_.size(); }
  [[nodiscard]] Domain& domain(std::size_t part) { return domains_[part]; }
  /// The neighbour of a part, if it has one.
  [[nodiscard]] std::optional<std::size_t> neighbour(std::size_t part, unsigned side) const;
  [[nodiscard]] std::size_t halo_bytes() const { return size_.halo_bytes(); }

  /// Planes of a part in the field before `step`: those that it gets from a neighbour, and those that the neighbour
  /// gets.
  [[nodiscard]] float* halo(std::size_t part, unsigned side, std::uint64_t step) const;
  [[nodiscard]] float* boundary(std::size_t part, unsigned side, std::uint64_t step) const;
  /// The planes for a step of a part, with its own halos.
  [[nodiscard]] Planes planes(std::size_t part, std::uint64_t step) const;

  /// Waits for all streams, if so many steps have been enqueued since the last wait that a queue may be full.
  ///   done  steps that have been enqueued before the last one
  void bound_queues(int done);
  /// Waits for all streams.
  void synchronize();

  /// Sets the initial values. Blocking.
  void reset();
  /// The field before `step`, [z + 8][y + 8][x + 8], boundary included. Blocking.
  [[nodiscard]] std::vector<float> gather(std::uint64_t step) const;

 private:
  [[nodiscard]] float* field(std::size_t part, std::uint64_t step) const;

  Size size_;
  std::vector<Domain> domains_;
  std::vector<beeline::hpe::DeviceMemory> fields_[2];  ///< of each part, before even and odd steps
};

}  // namespace stencil
