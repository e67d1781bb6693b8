// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's share of the grid in symmetric memory, and the common parts of all methods.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "beeline/host/launch.hpp"
#include "fields.hpp"
#include "gosa.hpp"
#include "problem.hpp"
#include "sweep.hpp"

namespace himeno {

/// Blocks and threads of the launches of one kernel.
struct Shape {
  unsigned blocks, threads;
};

/// How host ranks run the kernels: by default one block that takes whole planes, which suits CPUs. GPUs use many blocks
/// with small tiles; tests do so on CPUs.
struct HostGrid {
  unsigned blocks = 1;
  unsigned tile_vectors = 0;  ///< 0: a whole plane
};

/// The slab, its edges, and the buffers of gosa. Its constructor and destructor are collective.
class Domain {
 public:
  /// Throws invalid_argument when there are more ranks than interior planes.
  Domain(beeline::World& world, const Size& size, const HostGrid& host = {});

  /// Heap and pinned heap that a rank of a world of `ranks` ranks needs for any method.
  struct Heaps {
    std::size_t symmetric_bytes, pinned_bytes;
  };
  [[nodiscard]] static Heaps heaps(const Size& size, int ranks);

  /// Collective. Fills every array; the next iteration is 0.
  void reset(Data data);
  /// Reserves tags for `iterations` more iterations and returns the first. The result is the same on every rank if all
  /// pass the same number.
  [[nodiscard]] std::uint64_t take_tags(int iterations);
  /// Collective. The whole pressure before iteration `iteration`, [z][y][x], on rank 0; empty on the other ranks.
  [[nodiscard]] std::vector<float> gather(int iteration);

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Size& size() const { return size_; }
  [[nodiscard]] const Slab& slab() const { return slab_; }
  [[nodiscard]] const Fields& fields() const { return fields_; }
  [[nodiscard]] const Edges& edges() const { return edges_; }
  [[nodiscard]] const Sums& sums() const { return sums_; }
  /// Mailbox for kernels. Its total is in host memory; CPU threads that collect write their total to the same address.
  [[nodiscard]] const Mailbox& mailbox() const { return mailbox_; }
  /// The sum over all ranks from the last collection.
  [[nodiscard]] double gosa() const { return *mailbox_.total; }
  /// All interior planes of this rank.
  [[nodiscard]] Planes all_planes() const { return {1, slab_.planes + 1}; }
  /// This rank's interior planes as two halves, in its order of computation; one half may be empty. Neighbours use
  /// opposite orders: so the two planes at a side are computed at the same time, and travel while the other half is
  /// computed.
  [[nodiscard]] std::array<Planes, 2> halves() const;
  /// Bytes of one of the two pressure buffers, the same on every rank.
  [[nodiscard]] std::size_t pressure_bytes() const { return arrays_.back().bytes(); }
  [[nodiscard]] std::size_t plane_bytes() const { return static_cast<std::size_t>(fields_.plane()) * sizeof(float); }

  /// The shape of launches of `Kernel`: as many blocks as can be resident, so that blocks may wait.
  template <class Kernel, class... Args>
  [[nodiscard]] Shape shape() const {
    if (!world_.device().is_gpu()) return {host_.blocks, 1};
    return clamped(beeline::resident_blocks<Kernel, Args...>(world_, gpu_threads));
  }
  /// How `blocks` blocks share `planes` planes.
  [[nodiscard]] Tiling tiling(unsigned blocks, int planes) const;

  static constexpr unsigned gpu_threads = max_block_threads;

 private:
  [[nodiscard]] static Shape clamped(unsigned blocks);
  void fill(Array array, float* values, Data data);

  beeline::World& world_;
  Size size_;
  HostGrid host_;
  Slab slab_;
  std::vector<beeline::SymmetricArray<float>> arrays_;
  beeline::SymmetricArray<double> thread_sums_, block_sums_, arrived_;
  beeline::SymmetricArray<std::uint64_t> mailbox_words_;
  beeline::SymmetricArray<double> total_;
  Fields fields_{};
  Edges edges_{};
  Sums sums_{};
  Mailbox mailbox_{};
  std::optional<Data> coefficients_;  ///< data that the arrays hold
  std::uint64_t next_tag_ = 1;
};

}  // namespace himeno
