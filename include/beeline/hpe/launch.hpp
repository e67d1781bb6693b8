// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Portable kernels on streams of any device.
///
///   struct Scale {
///     template <class Grid>
///     BEELINE_HOST_DEVICE void operator()(Grid& grid, float* data, std::size_t count, float factor) const {
///       for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) data[i] *= factor;
///     }
///   };
///   beeline::hpe::launch(stream, {.blocks = 64, .threads = 256}, Scale{}, object, object.size(), 2.0f);
///
/// Kernels are functors as in beeline/host/launch.hpp, without a context, since there are no ranks. They may have the
/// constant `shared_bytes`. Their blocks do not wait for each other: `grid.sync` needs a world.

#include <array>
#include <type_traits>

#include "beeline/host/launch_options.hpp"
#include "beeline/hpe/impl/launch.hpp"
#include "beeline/hpe/launch_objects.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline::hpe {

/// Starts `kernel(grid, args...)` on the stream's device: on a GPU as a grid of thread blocks; on a host device block
/// by block, each with BEELINE_HOST_THREADS threads. Asynchronous. Of `options`, `blocks`, `threads` and `name` are
/// used.
///
/// Kernel and arguments are copied as bytes, so they are trivially copyable. An argument that is an `Object<T>` becomes
/// a `T*`; the device has the object from this call on until the kernel has ended. While a graph captures the stream,
/// launches with objects throw unavailable: capture `object.on(device)`, and bracket each run by a `DeviceAccess`.
///
/// Throws invalid_argument for a shape that no grid has, and for options of launches in worlds; no_resource if not even
/// one block fits the GPU; unavailable if the device does not work, or if the calling file is compiled without CUDA and
/// the stream is a GPU's. An exception of a kernel on a host device, and a fault on a GPU, are thrown by the stream's
/// next `synchronize` or `is_done`, as an Error that names the device; the kernel's own exception is nested in it.
template <class Kernel, class... Args>
void launch(Stream& stream, const LaunchOptions& options, const Kernel& kernel, Args&&... args) {
  constexpr bool travels =
      (beeline::detail::travels_as_bytes<Kernel> && ... && beeline::detail::travels_as_bytes<detail::PassedAs<Args>>);
  static_assert(travels,
                "a kernel and its arguments are copied to the device as bytes: they must be trivially copyable (pass "
                "data(), not the memory)");
  if constexpr (travels) {  // otherwise the compiler would add errors inside the library
    constexpr bool callable = detail::is_kernel<Kernel, detail::PassedAs<Args>...>;
    static_assert(callable, "the kernel has no operator()(Grid& grid, args...) const for these arguments");
    if constexpr (callable) {
      constexpr std::size_t count = (std::size_t{0} + ... + detail::Passed<std::decay_t<Args>>::is_object);
      const auto start = [&] {
        detail::launch_kernel<Kernel, detail::PassedAs<Args>...>(
            stream, options, kernel, detail::Passed<std::decay_t<Args>>::value(args, stream.device())...);
      };
      if constexpr (count == 0) {
        start();
      } else {
        std::array<ObjectState*, count> objects;
        ObjectState** end = objects.data();
        (detail::note_object<std::decay_t<Args>>(end, args), ...);
        detail::acquire_for_kernel(objects, stream);
        try {
          start();
        } catch (...) {
          detail::release_after_kernel(objects, stream);
          throw;
        }
        detail::release_after_kernel(objects, stream);
      }
    }
  }
}

}  // namespace beeline::hpe
