// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernels of all methods.

#include "beeline/hpe/object.hpp"
#include "beeline/hpe/stream.hpp"
#include "fields.hpp"

namespace stencil {

/// The planes next to the neighbours, which a method computes first; all planes of a slab that has no others.
[[nodiscard]] Part edges_of(const Shape& shape);
/// The other planes; no chunks if there are none.
[[nodiscard]] Part bulk_of(const Shape& shape);
/// All planes of a slab.
[[nodiscard]] Part all_of(const Shape& shape);

/// Enqueues a step of a part of a slab.
void enqueue_update(beeline::hpe::Stream& stream, const Planes& planes, const Shape& shape, const Part& part);
/// Enqueues a step of a slab whose fields, with halos of their own, are objects.
void enqueue_update(beeline::hpe::Stream& stream, const beeline::hpe::Object<float>& before,
                    const beeline::hpe::Object<float>& after, const Shape& shape);
/// Enqueues a fill of `planes` stored planes from `field` on with initial values.
///   first  number of the first of them in the volume, boundary included
void enqueue_initial_values(beeline::hpe::Stream& stream, float* field, const Size& size, std::size_t first,
                            std::size_t planes);
/// The same, of a field that is an object.
void enqueue_initial_values(beeline::hpe::Stream& stream, const beeline::hpe::Object<float>& field, const Size& size,
                            std::size_t first, std::size_t planes);

}  // namespace stencil
