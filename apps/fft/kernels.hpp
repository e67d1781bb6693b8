// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernels of all methods.

#include <cstddef>

#include "beeline/hpe/stream.hpp"
#include "complex.hpp"

namespace fft {

/// A device's share of a step between pairs of devices: one half of a transform of 2^log_length elements.
struct Share {
  std::size_t count;    ///< elements of a device
  std::size_t first;    ///< position of its first element in the half
  unsigned log_length;  ///< of the transform that the step halves
  bool is_upper;        ///< whether the device has a part of the upper half
};

/// Enqueues a step: out[i] = lower[i] + upper[i], or (lower[i] - upper[i]) times a root of unity in the upper half. One
/// of the sources is the device's own part, the other its partner's.
void enqueue_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                         const Share& share);

/// Enqueues the last step between devices together with the steps inside each device that follow it, which divide its
/// part into `splits_of_exchange` sub-parts, one behind the other. `share.count` is at least as many.
void enqueue_split_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                               const Share& share);
/// Enqueues the steps that divide each of `transforms` vectors of 2^log_length elements into `splits_inside` sub-parts,
/// in place and in one pass over the memory. A sub-part has at least `columns_inside` elements.
void enqueue_splits_inside(beeline::hpe::Stream& stream, Complex* elements, std::size_t transforms,
                           unsigned log_length);

/// Enqueues one of the log2(count) passes of `transforms` transforms inside a device, for host devices: Stockham's,
/// which keeps the order of the elements.
///   roots   [count / 2], from `enqueue_roots`
///   count   a power of two, as stride: 1, 2, 4, ... in the order of the passes
void enqueue_pass(beeline::hpe::Stream& stream, Complex* out, const Complex* in, const Complex* roots,
                  std::size_t count, std::size_t transforms, std::size_t stride);
/// Enqueues roots[i] = e^(-2 pi i * i / 2^log_length), for half of the indices.
void enqueue_roots(beeline::hpe::Stream& stream, Complex* roots, unsigned log_length);

/// Enqueues a fill with the initial elements from `first` on.
void enqueue_initial_elements(beeline::hpe::Stream& stream, Complex* out, std::size_t first, std::size_t count);
/// Enqueues a copy inside a device by its threads, for the bound.
void enqueue_copy(beeline::hpe::Stream& stream, Complex* out, const Complex* in, std::size_t count);

}  // namespace fft
