// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The transform inside a device: by cuFFT on a GPU, by kernels on a host device.

#include <memory>
#include <string>

#include "beeline/hpe/device.hpp"
#include "beeline/hpe/stream.hpp"
#include "complex.hpp"

namespace fft {

/// One or several transforms of one length on one device.
class LocalTransform {
 public:
  virtual ~LocalTransform() = default;
  /// Whether `enqueue` leaves the other buffer alone.
  [[nodiscard]] virtual bool is_in_place() const = 0;
  /// Enqueues the transforms of `elements`, one vector behind the other. Both buffers have the length of all, and both
  /// may be written. Returns the one that has the results, each in the order of frequencies.
  [[nodiscard]] virtual Complex* enqueue(beeline::hpe::Stream& stream, Complex* elements, Complex* other) = 0;
};

/// `transforms` transforms of `count` elements each, a power of two. Throws unavailable for a GPU without cuFFT, and
/// no_resource.
[[nodiscard]] std::unique_ptr<LocalTransform> make_local_transform(beeline::hpe::Device device, std::size_t count,
                                                                   std::size_t transforms);

/// Why GPUs have no transform; empty if they have. Opens the library of cuFFT.
[[nodiscard]] std::string why_no_cufft();

/// Times that a transform of `count` elements has to read and write all of them, if sub-transforms of up to 2^14
/// elements stay inside a multiprocessor: the bound for any implementation.
[[nodiscard]] int least_passes(std::size_t count);

}  // namespace fft
