// SPDX-License-Identifier: Apache-2.0
#include "volume.hpp"

#include "beeline/hpe/copy.hpp"
#include "compute.hpp"

namespace stencil {

namespace hpe = beeline::hpe;

Domain::Domain(hpe::Device device, const Size& size, const Slab& part)
    : slab(part), shape{size.x, size.y, part.planes, size.width(), size.plane()},
      edges(device, beeline::StreamPriority::high), bulk(device) {}

void Domain::enqueue(const Planes& planes) {
  enqueue_update(edges, planes, shape, edges_of(shape));
  enqueue_update(bulk, planes, shape, bulk_of(shape));
}

void Domain::enqueue_all(const Planes& planes) { enqueue_update(edges, planes, shape, all_of(shape)); }

void Domain::join_streams() {
  edges.wait_for(bulk);
  bulk.wait_for(edges);
}

void Domain::synchronize() {
  edges.synchronize();
  bulk.synchronize();
}

Volume::Volume(const Setup& setup) : size_(setup.size) {
  const std::size_t parts = setup.devices.size();
  for (std::size_t part = 0; part < parts; ++part) {
    domains_.emplace_back(setup.devices[part], size_, slab_of(size_, parts, part));
    const std::size_t bytes = (domains_.back().slab.planes + 2 * radius) * size_.plane() * sizeof(float);
    for (auto& fields : fields_) fields.emplace_back(setup.devices[part], bytes);
  }
}

std::optional<std::size_t> Volume::neighbour(std::size_t part, unsigned side) const {
  if (side == 0 ? part == 0 : part + 1 == parts()) return std::nullopt;
  return side == 0 ? part - 1 : part + 1;
}

float* Volume::field(std::size_t part, std::uint64_t step) const { return fields_[step % 2][part].as<float>(); }

float* Volume::halo(std::size_t part, unsigned side, std::uint64_t step) const {
  return field(part, step) + (side == 0 ? 0 : radius + domains_[part].slab.planes) * size_.plane();
}

float* Volume::boundary(std::size_t part, unsigned side, std::uint64_t step) const {
  return field(part, step) + (side == 0 ? radius : domains_[part].slab.planes) * size_.plane();
}

Planes Volume::planes(std::size_t part, std::uint64_t step) const {
  return {halo(part, 0, step), boundary(part, 0, step), halo(part, 1, step), boundary(part, 0, step + 1)};
}

void Volume::bound_queues(int done) {
  constexpr int most = 64;
  if ((done + 1) % most == 0) synchronize();
}

void Volume::synchronize() {
  for (Domain& one : domains_) one.synchronize();
}

void Volume::reset() {
  for (std::size_t part = 0; part < parts(); ++part) {
    Domain& one = domains_[part];
    for (std::uint64_t step = 0; step < 2; ++step)
      enqueue_initial_values(one.edges, field(part, step), size_, one.slab.first, one.slab.planes + 2 * radius);
  }
  synchronize();
}

std::vector<float> Volume::gather(std::uint64_t step) const {
  std::vector<float> all(size_.stored());
  for (std::size_t part = 0; part < parts(); ++part) {
    // The first part also has the boundary below, the last one the boundary above.
    const Slab& slab = domains_[part].slab;
    const std::size_t below = part == 0 ? radius : 0, above = part + 1 == parts() ? radius : 0;
    hpe::copy(all.data() + (slab.first + radius - below) * size_.plane(),
              boundary(part, 0, step) - below * size_.plane(),
              (slab.planes + below + above) * size_.plane() * sizeof(float));
  }
  return all;
}

}  // namespace stencil
