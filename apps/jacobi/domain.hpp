// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's share of the grid in symmetric memory, and the common parts of all methods.

#include <cstdint>
#include <vector>

#include "beeline/host/launch.hpp"
#include "fields.hpp"
#include "problem.hpp"

namespace jacobi {

/// Threads of a block of every launch on a GPU.
inline constexpr unsigned block_threads = 256;

/// How host ranks run the kernels: by default one block that takes whole rows, which suits CPUs. GPUs use many blocks
/// with short segments; tests do so on CPUs.
struct HostGrid {
  unsigned blocks = 1;
  int segment_quads = 0;  ///< 0: a whole row
};

/// The slab, its edges and its iteration. Constructor and destructor are collective.
class Domain {
 public:
  /// Throws invalid_argument when there are more ranks than rows.
  Domain(beeline::World& world, const Size& size, const HostGrid& host = {});

  /// Bytes of both buffers on a rank of a world of `ranks`.
  [[nodiscard]] static std::size_t field_bytes(const Size& size, int ranks);

  /// Of method task: messages that may be in flight in each queue, and the bytes of the queues and payloads, which hold
  /// two rows if each queue takes one segment.
  static constexpr std::uint32_t task_depth = 8;
  [[nodiscard]] static std::size_t task_bytes(const Size& size, int ranks);

  /// Collective. Fills both buffers; the next iteration is 0.
  void reset();
  /// Reserves `iterations` iterations, which count as done, and returns the first. The result is the same on every rank
  /// if all pass the same number.
  [[nodiscard]] Step take_steps(int iterations, bool communicate);
  /// Collective. The whole field after all reserved iterations, [rows + 2][columns + 2], on rank 0; empty on the other
  /// ranks.
  [[nodiscard]] std::vector<float> gather();

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Size& size() const { return size_; }
  [[nodiscard]] const Fields& fields() const { return fields_; }
  [[nodiscard]] const Edges& edges() const { return edges_; }
  /// All rows of this rank.
  [[nodiscard]] Piece all() const { return {1, fields_.rows + 1, 0, fields_.quads}; }
  /// The outermost row at `side`. Empty if there is no neighbour, and at the upper side if the only row already belongs
  /// to the lower side.
  [[nodiscard]] Piece edge(unsigned side) const;
  /// The rows that belong to no edge.
  [[nodiscard]] Piece interior() const;
  /// Bytes of a row that go to a neighbour.
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(fields_.quads) * sizeof(float[4]); }
  /// Quads of a segment, the part of an edge that one block sends; the same on all ranks: at most `on_gpus`, or the
  /// number in the host grid.
  [[nodiscard]] int segment_quads(int on_gpus) const;

  /// Blocks of a launch of `Kernel` over `piece`; all blocks may wait.
  template <class Kernel, class... Args>
  [[nodiscard]] unsigned blocks(const Piece& piece) const {
    if (!world_.device().is_gpu()) return host_.blocks;
    return blocks_of(piece, beeline::resident_blocks<Kernel, Args...>(world_, block_threads));
  }

 private:
  [[nodiscard]] static unsigned blocks_of(const Piece& piece, unsigned resident);

  beeline::World& world_;
  Size size_;
  HostGrid host_;
  Slab slab_;
  beeline::SymmetricArray<float> even_, odd_;
  Fields fields_{};
  Edges edges_{};
  std::uint64_t first_tag_ = 0, iteration_ = 0;
};

}  // namespace jacobi
