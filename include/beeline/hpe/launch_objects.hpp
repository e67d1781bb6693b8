// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How launches hand objects to kernels.

#include <span>
#include <type_traits>

#include "beeline/hpe/stream.hpp"

namespace beeline::hpe {

class ObjectState;
template <class T>
class Object;

namespace detail {

/// Hands objects to a kernel that the caller launches next on the stream: moves what the host has changed to the
/// device, in the order of the stream. Each call is followed by `release_after_kernel`.
void acquire_for_kernel(std::span<ObjectState* const> objects, Stream& stream);
/// The objects belong to the host again once the stream has passed this point.
void release_after_kernel(std::span<ObjectState* const> objects, Stream& stream);

/// What a kernel gets for an argument of a launch: for an object a pointer to its elements, otherwise the argument.
template <class Argument>
struct Passed {
  using Type = Argument;
  static constexpr bool is_object = false;
  [[nodiscard]] static const Argument& value(const Argument& argument, Device /*device*/) { return argument; }
};
template <class T>
struct Passed<Object<T>> {
  using Type = T*;
  static constexpr bool is_object = true;
  [[nodiscard]] static T* value(const Object<T>& object, Device device) { return object.on(device); }
};
template <class Argument>
using PassedAs = typename Passed<std::decay_t<Argument>>::Type;

/// Appends the state of an argument that is an object.
template <class Argument>
void note_object(ObjectState**& end, const Argument& argument) {
  if constexpr (Passed<Argument>::is_object) *end++ = &argument.state();
}

}  // namespace detail
}  // namespace beeline::hpe
