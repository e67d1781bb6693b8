// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory that Python code passes: numpy arrays, `beeline.Memory`, and whatever else speaks DLPack.

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
  int gpu = -1;  ///< index of the GPU whose memory it is, in this process; -1: host memory
};

/// They, and what keeps them alive.
struct Tensor : Elements {
  nanobind::object owner;
};

/// The tensor that `object` is; throws TypeError (no tensor) or ValueError (not contiguous, on a device that no rank of
/// this world has, read-only where it is to be written), naming the argument.
[[nodiscard]] Tensor tensor_of(const nanobind::object& object, const char* argument, Access access,
                               const JoinedWorld& world);

/// The same, and in memory that this rank's device reaches; throws ValueError otherwise.
[[nodiscard]] Tensor reached_tensor(const nanobind::object& object, const char* argument, Access access,
                                    const JoinedWorld& world);

/// The same of a tensor that DLPack describes. Needs no lock of Python's. `type`: the name of its type, for errors.
[[nodiscard]] Elements reached_elements(const nanobind::dlpack::dltensor& array, const char* type, const char* argument,
                                        const JoinedWorld& joined);

/// Throws ValueError where the elements of a call's two tensors have different types: bits would be taken for others.
void require_same_type(nanobind::dlpack::dtype destination, nanobind::dlpack::dtype source);

/// An integer of Python or numpy; nothing for another object.
[[nodiscard]] std::optional<std::int64_t> integer_of(nanobind::handle object);

/// The name of an object's type, for errors.
[[nodiscard]] std::string type_of(const nanobind::object& object);

/// `float32` and so on, as DLPack has it; throws ValueError that lists the known names. Takes names, and the types of
/// numpy and torch.
[[nodiscard]] nanobind::dlpack::dtype element_type(const nanobind::object& type);
/// The name of one.
[[nodiscard]] std::string type_name(nanobind::dlpack::dtype type);
/// The one that collectives compute with; nothing for types that they only move.
[[nodiscard]] std::optional<ElementType> computed_type(nanobind::dlpack::dtype type);

/// How collectives see the elements of a tensor.
struct Words {
  ElementType type;
  std::size_t each;  ///< words of an element

  [[nodiscard]] std::size_t bytes() const { return each * bytes_of(type); }
};
/// For a call that only moves them: bytes, where collectives do not know the type.
[[nodiscard]] Words moved_words(const Elements& elements);
/// For a reduction: sums and averages of complex numbers are those of their parts. Throws ValueError for a type that
/// has no such reduction.
[[nodiscard]] Words reduced_words(const Elements& elements, Reduction reduction);

}  // namespace beeline::python
