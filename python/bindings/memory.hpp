// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Memory`: an allocation in the symmetric or the pinned heap, on one rank.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "joined_world.hpp"
#include "tensor.hpp"

namespace beeline::python {

/// Elements of one type and shape in a heap: an allocation, or a part of an allocation. The memory stays allocated
/// until `free`, which is collective, or until the end of the world. Dropping the last object that refers to it does
/// not free it, since ranks drop their objects at different times. Memory that all ranks have dropped is freed when a
/// heap is full.
class Memory {
 public:
  using Shape = std::vector<std::size_t>;

  /// Collective.
  static Memory allocate(const std::shared_ptr<JoinedWorld>& world, Shape shape, nanobind::dlpack::dtype type,
                         Heap heap);
  /// Collective: all ranks free the same allocation. Throws invalid_argument for a part of one.
  void free();
  /// The same elements on another rank.
  [[nodiscard]] Memory at(int peer) const;
  /// `count` elements of the first axis from `first` on; without `count` the single element, without the axis.
  [[nodiscard]] Memory part(std::size_t first, std::optional<std::size_t> count) const;

  /// Throws invalid_argument when the memory was freed, or the world was left.
  [[nodiscard]] void* address() const;
  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] nanobind::dlpack::dtype type() const { return type_; }
  [[nodiscard]] Heap heap() const { return heap_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::size_t bytes() const;
  /// Whether it is GPU memory, from which CPU threads do not load.
  [[nodiscard]] bool on_gpu() const;
  /// Whether it is memory of another node, which only copies reach.
  [[nodiscard]] bool is_remote() const;
  /// DLPack's kind and number of the device; throws BufferError for memory of another rank's GPU,
  /// or of another node.
  [[nodiscard]] std::pair<int, int> dlpack_device() const;

 private:
  std::shared_ptr<JoinedWorld> world_;
  Shape shape_;
  nanobind::dlpack::dtype type_{};
  Heap heap_ = Heap::symmetric;
  int rank_ = 0;
  /// The allocation, shared by all objects that refer to it.
  struct Allocation {
    ~Allocation();
    JoinedWorld& world;  ///< lives as long as the last of these objects
    void* address;
    std::size_t bytes;
    Heap heap;
    bool is_freed = false;
  };
  void* mine_ = nullptr;  ///< the same element on this process's rank
  std::shared_ptr<Allocation> allocation_;
};

/// The address of the destination of a put: memory of this rank in `world`, as large as `source` and of its type.
/// Throws TypeError or ValueError for any other object.
[[nodiscard]] void* destination_of_put(const nanobind::object& target, const Elements& source,
                                       const std::shared_ptr<JoinedWorld>& world);

}  // namespace beeline::python
