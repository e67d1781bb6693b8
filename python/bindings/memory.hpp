// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Memory`: an allocation in the symmetric or the pinned heap, on one rank.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "joined_world.hpp"

namespace beeline::python {

/// Elements of one type and shape in a heap. Its memory stays allocated until `free`, which is collective, or the end
/// of the world: the end of this object does not free it, since ranks end theirs at different times.
class Memory {
 public:
  using Shape = std::vector<std::size_t>;

  /// Collective.
  static Memory allocate(const std::shared_ptr<JoinedWorld>& world, Shape shape, nanobind::dlpack::dtype type,
                         Heap heap);
  /// Collective: all ranks free the same allocation.
  void free();
  /// The same elements on another rank.
  [[nodiscard]] Memory at(int peer) const;

  /// Throws invalid_argument when it was freed, or the world was left.
  [[nodiscard]] void* address() const;
  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] nanobind::dlpack::dtype type() const { return type_; }
  [[nodiscard]] Heap heap() const { return heap_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::size_t bytes() const;
  /// Whether it is a GPU's memory, which no CPU thread loads from.
  [[nodiscard]] bool on_gpu() const;
  /// DLPack's kind and number of the device; throws BufferError for memory of another rank's GPU.
  [[nodiscard]] std::pair<int, int> dlpack_device() const;

 private:
  std::shared_ptr<JoinedWorld> world_;
  Shape shape_;
  nanobind::dlpack::dtype type_{};
  Heap heap_ = Heap::symmetric;
  int rank_ = 0;
  void* mine_ = nullptr;         ///< on this process's rank
  std::shared_ptr<bool> freed_;  ///< shared with the same elements on other ranks
};

}  // namespace beeline::python
