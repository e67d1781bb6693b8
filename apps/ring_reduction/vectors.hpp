// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Each rank's vector and inbox in symmetric memory, and what every scheme needs around them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "beeline/host/launch.hpp"
#include "schedule.hpp"

namespace ring_reduction {

/// Sizes that follow from the device, or are set by tests: small ones make many chunks and lanes of short vectors.
struct Shape {
  std::size_t copy_chunk_bytes = 0;  ///< of host and stream; 0: the configuration's chunk (BEELINE_CHUNK_BYTES)
  std::size_t put_chunk_bytes = std::size_t{64} << 10;    ///< of device
  std::size_t post_chunk_bytes = std::size_t{1} << 20;    ///< of proxy
  std::size_t packet_chunk_bytes = std::size_t{8} << 10;  ///< of device_packets: one slot of a packet ring
  unsigned lanes = 0;  ///< blocks of device, device_packets and proxy at most; 0: 1 on host ranks, on GPUs by scheme
};

/// The vector that is reduced in place. Constructor and destructor are collective.
class Vectors {
 public:
  Vectors(beeline::World& world, std::size_t count, const Shape& shape = {});

  /// Heap and pinned heap that a rank needs for any scheme, on GPUs or on CPUs.
  struct Heaps {
    std::size_t symmetric_bytes, pinned_bytes;
  };
  [[nodiscard]] static Heaps heaps(std::size_t count, int ranks, bool gpus);

  /// Collective. Fills the vector with data set `set`.
  void fill(std::uint32_t set);
  /// This rank's vector.
  [[nodiscard]] std::vector<float> values();

  /// This rank's ring, in chunks of at most `chunk_bytes`.
  [[nodiscard]] Ring ring(std::size_t chunk_bytes) const;
  /// Collective. Blocks of a device scheme, the same on every rank: at most `on_gpus` (or what the shape says), one for
  /// each chunk, and as many as every rank's device holds at once (`resident` on this one).
  [[nodiscard]] unsigned agree_on_lanes(const Ring& ring, unsigned on_gpus, unsigned resident) const;

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// Chunk of the schemes whose copies are made outside kernels.
  [[nodiscard]] std::size_t copy_chunk_bytes() const {
    return shape_.copy_chunk_bytes > 0 ? shape_.copy_chunk_bytes : world_.config().chunk_bytes;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] float* data() const { return data_.data(); }
  [[nodiscard]] float* inbox() const { return inbox_.data(); }

 private:
  beeline::World& world_;
  Shape shape_;
  std::size_t count_;
  beeline::SymmetricArray<float> data_, inbox_;
};

/// Threads of a block of every launch.
inline constexpr unsigned block_threads = 512;

/// Blocks of a launch that handles `count` elements without waiting.
[[nodiscard]] unsigned blocks_for(const beeline::World& world, std::size_t count);

}  // namespace ring_reduction
