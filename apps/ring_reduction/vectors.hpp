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

/// Lanes of a device scheme, and blocks of each.
struct LaneShape {
  unsigned lanes, blocks;
};

/// Sizes; 0: as follows from the device. Tests set small sizes, so that short vectors have many chunks.
struct Shape {
  std::size_t copy_chunk_bytes = 0;  ///< of host and stream; 0: the configuration's chunk (BEELINE_CHUNK_BYTES)
  std::size_t put_chunk_bytes = std::size_t{64} << 10;       ///< of device
  std::size_t task_chunk_bytes = std::size_t{128} << 10;     ///< of task
  std::size_t post_chunk_bytes = 0;                          ///< of proxy and triggered; 0: by the kind of device
  std::size_t service_chunk_bytes = std::size_t{256} << 10;  ///< of proxy_device
  std::size_t packet_chunk_bytes = std::size_t{8} << 10;     ///< of device_packets: one slot of a packet ring
  unsigned lanes = 0;           ///< at most, of the schemes that have them; 0: 1 on host ranks, on GPUs by scheme
  unsigned blocks = 0;          ///< of a lane that may have several; 0: 1 on host ranks, on GPUs by scheme
  unsigned service_blocks = 0;  ///< of proxy_device; 0: 1 on host ranks, 2 on GPUs; each books a quarter of it

  /// The same, with chunks of one size for all schemes.
  [[nodiscard]] Shape with_chunks(std::size_t bytes) const {
    Shape shape = *this;
    shape.copy_chunk_bytes = shape.put_chunk_bytes = shape.post_chunk_bytes = bytes;
    shape.service_chunk_bytes = shape.packet_chunk_bytes = shape.task_chunk_bytes = bytes;
    return shape;
  }
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
  /// Collective. Lanes of a device scheme, and blocks of each, the same on every rank: at most `on_gpus` (or what the
  /// shape says), a lane for each chunk, and as many blocks as every rank's device holds at once (`resident` on this
  /// one).
  [[nodiscard]] LaneShape agree_on_lanes(const Ring& ring, LaneShape on_gpus, unsigned resident) const;

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// Chunk of the schemes whose copies are made outside kernels.
  [[nodiscard]] std::size_t copy_chunk_bytes() const {
    return shape_.copy_chunk_bytes > 0 ? shape_.copy_chunk_bytes : world_.config().chunk_bytes;
  }
  /// Chunk of the schemes whose kernel asks an engine or a stream to copy: each copy takes some microseconds more than
  /// its bytes on a GPU; a CPU reads a short one from its cache.
  [[nodiscard]] std::size_t post_chunk_bytes() const {
    if (shape_.post_chunk_bytes > 0) return shape_.post_chunk_bytes;
    return std::size_t{world_.device().is_gpu() ? 8u : 1u} << 20;
  }
  [[nodiscard]] unsigned service_blocks() const {
    return shape_.service_blocks > 0 ? shape_.service_blocks : world_.device().is_gpu() ? 2 : 1;
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
