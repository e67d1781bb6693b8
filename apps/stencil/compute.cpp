// SPDX-License-Identifier: Apache-2.0
#include "compute.hpp"

#include <algorithm>

#include "beeline/hpe/launch.hpp"
#include "sweep.hpp"

namespace stencil {

namespace {

constexpr unsigned block_threads = tile_x * tile_y;

struct FillWithInitialValues {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, float* field, std::size_t plane, std::size_t first,
                                      std::size_t planes) const {
    for (std::size_t at = grid.thread_rank(); at < planes * plane; at += grid.size())
      field[at] = initial_value(first + at / plane, at % plane);
  }
};

/// A step of a part of a slab with halos of its own.
struct UpdateFields {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const float* before, float* after, const Shape& shape,
                                      const Part& part) const {
    const std::size_t halo = radius * shape.plane, slab = shape.planes * shape.plane;
    Update{}(grid, Planes{before, before + halo, before + halo + slab, after + halo}, shape, part);
  }
};

std::size_t tiles_of(const Shape& shape, const Part& part) {
  return ((shape.x + tile_x - 1) / tile_x) * ((shape.y + tile_y - 1) / tile_y) * part.chunks;
}

/// Planes [first, end) in chunks: longer chunks load fewer planes twice, shorter ones occupy more multiprocessors.
Part in_chunks(std::size_t first, std::size_t end) {
  constexpr std::size_t chunk = 64;
  return {first, chunk, chunk, (end - first + chunk - 1) / chunk, end};
}

}  // namespace

Part edges_of(const Shape& shape) {
  if (shape.planes <= 2 * radius) return {0, shape.planes, shape.planes, 1, shape.planes};
  return {0, shape.planes - radius, radius, 2, shape.planes};
}

Part bulk_of(const Shape& shape) {
  return shape.planes <= 2 * radius ? Part{} : in_chunks(radius, shape.planes - radius);
}

Part all_of(const Shape& shape) { return in_chunks(0, shape.planes); }

void enqueue_update(beeline::hpe::Stream& stream, const Planes& planes, const Shape& shape, const Part& part) {
  if (part.chunks == 0) return;
  beeline::hpe::launch(stream, apps::launch_options(stream, tiles_of(shape, part), block_threads), Update{}, planes,
                       shape, part);
}

void enqueue_update(beeline::hpe::Stream& stream, const beeline::hpe::Object<float>& before,
                    const beeline::hpe::Object<float>& after, const Shape& shape) {
  const Part all = all_of(shape);
  beeline::hpe::launch(stream, apps::launch_options(stream, tiles_of(shape, all), block_threads), UpdateFields{},
                       before, after, shape, all);
}

void enqueue_initial_values(beeline::hpe::Stream& stream, float* field, const Size& size, std::size_t first,
                            std::size_t planes) {
  beeline::hpe::launch(stream, apps::launch_options(stream, planes * size.plane() / block_threads, block_threads),
                       FillWithInitialValues{}, field, size.plane(), first, planes);
}

void enqueue_initial_values(beeline::hpe::Stream& stream, const beeline::hpe::Object<float>& field, const Size& size,
                            std::size_t first, std::size_t planes) {
  beeline::hpe::launch(stream, apps::launch_options(stream, planes * size.plane() / block_threads, block_threads),
                       FillWithInitialValues{}, field, size.plane(), first, planes);
}

}  // namespace stencil
