// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory that Python code passes: numpy arrays, `beeline.Memory`, and any other object with DLPack.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "beeline/collectives/elements.hpp"
#include "beeline/collectives/reduction.hpp"
#include "joined_world.hpp"

namespace beeline::python {

/// Whether a call reads a tensor or writes it.
enum class Access { read, write };

/// The elements of a contiguous tensor on a device that a world's ranks reach.
struct Elements {
  void* data = nullptr;
  std::size_t elements = 0, bytes = 0;
  nanobind::dlpack::dtype type;
  int gpu = -1;  ///< index, in this process, of the GPU that holds the memory; -1: host memory
};

/// Elements with the object that keeps them alive.
struct Tensor : Elements {
  nanobind::object owner;
};

/// Returns `object` as a tensor. Throws TypeError (no tensor) or ValueError (not contiguous, on a device that no rank
/// of this world has, read-only although it will be written), naming the argument.
[[nodiscard]] Tensor tensor_of(const nanobind::object& object, const char* argument, Access access,
                               const JoinedWorld& world);

/// The same for a call that belongs to no world.
[[nodiscard]] Tensor tensor_of(const nanobind::object& object, const char* argument, Access access);

/// The same for memory that this rank's device must reach; otherwise throws ValueError.
[[nodiscard]] Tensor reached_tensor(const nanobind::object& object, const char* argument, Access access,
                                    const JoinedWorld& world);

/// The same for a tensor that DLPack describes. Does not need Python's lock. `type` is the name of its type, for
/// errors.
[[nodiscard]] Elements reached_elements(const nanobind::dlpack::dltensor& array, const char* type, const char* argument,
                                        const JoinedWorld& joined);

/// Throws ValueError if the two tensors of a call have different element types, because a copy would misinterpret bits.
void require_same_type(nanobind::dlpack::dtype destination, nanobind::dlpack::dtype source);

/// The same, and ValueError if their sizes differ.
void require_same_size(const Elements& destination, const Elements& source);

/// The value of an integer of Python or numpy; nothing for any other object.
[[nodiscard]] std::optional<std::int64_t> integer_of(nanobind::handle object);

/// The name of an object's type, for errors.
[[nodiscard]] std::string type_of(const nanobind::object& object);

/// DLPack's type for a name as `float32`, or for a type of numpy or torch. Throws ValueError that lists the known
/// names.
[[nodiscard]] nanobind::dlpack::dtype element_type(const nanobind::object& type);
/// The name of a type.
[[nodiscard]] std::string type_name(nanobind::dlpack::dtype type);
/// numpy's view of an object that speaks DLPack, with elements of `type`. Throws TypeError for bfloat16, which numpy
/// lacks.
[[nodiscard]] nanobind::object numpy_view_of(const nanobind::object& object, nanobind::dlpack::dtype type);
/// The element type with which collectives compute; nothing for types that they only move.
[[nodiscard]] std::optional<ElementType> computed_type(nanobind::dlpack::dtype type);

/// The elements of a tensor as collectives see them.
struct Words {
  ElementType type;
  std::size_t each;  ///< words per element

  [[nodiscard]] std::size_t bytes() const { return each * bytes_of(type); }
};
/// The words for a call that only moves elements: bytes if collectives do not know the type.
[[nodiscard]] Words moved_words(const Elements& elements);
/// The words for a reduction; sums and averages of complex numbers are computed on real and imaginary parts. Throws
/// ValueError for a type without such a reduction.
[[nodiscard]] Words reduced_words(const Elements& elements, Reduction reduction);

}  // namespace beeline::python
