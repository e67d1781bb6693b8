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
#include "joined_world.hpp"

namespace beeline::python {

/// Whether a call reads a tensor or writes it.
enum class Access { read, write };

/// A contiguous tensor on a device that a world's ranks reach, and what keeps it alive.
struct Tensor {
  void* data = nullptr;
  std::size_t elements = 0, bytes = 0;
  nanobind::dlpack::dtype type;
  int gpu = -1;  ///< index of the GPU whose memory it is, in this process; -1: host memory
  nanobind::object owner;
};

/// The tensor that `object` is; throws TypeError (no tensor) or ValueError (not contiguous, on a device that no rank of
/// this world has, read-only where it is to be written), naming the argument.
[[nodiscard]] Tensor tensor_of(const nanobind::object& object, const char* argument, Access access,
                               const JoinedWorld& world);

/// The same, and in memory that this rank's device reaches; throws ValueError otherwise.
[[nodiscard]] Tensor reached_tensor(const nanobind::object& object, const char* argument, Access access,
                                    const JoinedWorld& world);

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

}  // namespace beeline::python
