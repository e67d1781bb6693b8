// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method objects: each slab is a coherent object, whose bytes the library moves to where they are used. A boundary is
/// copied from object to object, wherever its bytes are at that time; the CPU reads the result at the same addresses.
/// Source: seed 001, listing 4.

#include <algorithm>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/object.hpp"
#include "compute.hpp"
#include "method.hpp"

namespace stencil {

namespace {

namespace hpe = beeline::hpe;

hpe::Object<float> make_field(hpe::Device device, const Size& size, const Slab& part) {
  hpe::ObjectOptions options;
  options.device = device;
  return hpe::Object<float>((part.planes + 2 * radius) * size.plane(), options);
}

struct ObjectSlab {
  ObjectSlab(hpe::Device device, const Size& size, const Slab& part)
      : slab(part), shape{size.x, size.y, part.planes, size.width(), size.plane()},
        fields{make_field(device, size, part), make_field(device, size, part)}, stream(device) {}

  /// Stored plane `plane` of the field before `step`, the halo below included.
  [[nodiscard]] float* plane(std::size_t number, std::uint64_t step) const {
    return fields[step % 2].data() + number * shape.plane;
  }

  Slab slab;
  Shape shape;
  hpe::Object<float> fields[2];  ///< before even and odd steps
  hpe::Stream stream;
};

class Objects final : public Method {
 public:
  explicit Objects(const Setup& setup) : Method(setup) {
    const std::size_t parts = setup.devices.size();
    for (std::size_t part = 0; part < parts; ++part)
      slabs_.emplace_back(setup.devices[part], setup.size, slab_of(setup.size, parts, part));
  }

  void reset() override {
    step_ = 0;
    for (ObjectSlab& one : slabs_)
      for (const hpe::Object<float>& field : one.fields)
        enqueue_initial_values(one.stream, field, setup().size, one.slab.first, one.slab.planes + 2 * radius);
    synchronize();
  }

  void run(int steps, bool communicate) override {
    for (int done = 0; done < steps; ++done) {
      for (ObjectSlab& one : slabs_)
        enqueue_update(one.stream, one.fields[step_ % 2], one.fields[(step_ + 1) % 2], one.shape);
      ++step_;
      if (communicate)
        exchange();
      else
        synchronize();
    }
    synchronize();
  }

  [[nodiscard]] std::vector<float> gather() override {
    const Size& size = setup().size;
    std::vector<float> all(size.stored());
    for (const ObjectSlab& one : slabs_) {
      // Its own planes, and the boundary below or above, which the neighbours' own planes replace elsewhere.
      const bool is_last = &one == &slabs_.back();
      const std::size_t first = one.slab.first == 0 ? 0 : radius;
      const std::size_t end = one.slab.planes + (is_last ? 2 : 1) * radius;
      std::copy(one.plane(first, step_), one.plane(end, step_), all.begin() + offset_of(one.slab.first + first));
    }
    return all;
  }

 private:
  // communication: begin
  void exchange() {
    for (std::size_t part = 1; part < slabs_.size(); ++part) {
      const ObjectSlab &below = slabs_[part - 1], &above = slabs_[part];
      hpe::copy(below.plane(below.slab.planes + radius, step_), above.plane(radius, step_), setup().size.halo_bytes());
      hpe::copy(above.plane(0, step_), below.plane(below.slab.planes, step_), setup().size.halo_bytes());
    }
  }
  // communication: end

  [[nodiscard]] std::ptrdiff_t offset_of(std::size_t plane) const {
    return static_cast<std::ptrdiff_t>(plane * setup().size.plane());
  }
  void synchronize() {
    for (ObjectSlab& one : slabs_) one.stream.synchronize();
  }

  std::vector<ObjectSlab> slabs_;
  std::uint64_t step_ = 0;
};

}  // namespace

MethodInfo objects() {
  return MethodInfo::of<Objects>(
      {"objects", "slabs are coherent objects; boundaries are copied from object to object"});
}

}  // namespace stencil
