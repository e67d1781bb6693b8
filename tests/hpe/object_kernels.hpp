// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels of host devices on objects, for tests of objects.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "beeline/hpe/object.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline_test {

/// Runs `kernel(elements, count)` in the order of the stream of a host device, as a launch does. Asynchronous.
template <class T, class Kernel>
void run_on(beeline::hpe::Stream& stream, beeline::hpe::Object<T>& object, Kernel kernel) {
  T* const elements = object.on(stream.device());
  const beeline::hpe::DeviceAccess access(stream, {&object.state()});
  stream.enqueue([elements, count = object.size(), kernel = std::move(kernel)] { kernel(elements, count); });
}

/// Adds `value` to each element.
inline auto add_to_all(std::uint64_t value) {
  return [value](std::uint64_t* elements, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) elements[i] += value;
  };
}

}  // namespace beeline_test
