// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method shared_devices: one CPU thread drives all devices, and copies boundaries directly from device to device. The
/// copies follow the planes at the edges, in their streams, while the other planes are computed.
/// Source: seed 001, listing 2.

#include "beeline/hpe/copy.hpp"
#include "method.hpp"

namespace stencil {

namespace {

class SharedDevices final : public MethodOnVolume {
 public:
  using MethodOnVolume::MethodOnVolume;

  void run(int steps, bool communicate) override {
    std::uint64_t step = take_steps(steps);
    for (int done = 0; done < steps; ++done, ++step) {
      for (std::size_t part = 0; part < volume().parts(); ++part) volume().domain(part).join_streams();
      if (communicate) await_neighbours();
      for (std::size_t part = 0; part < volume().parts(); ++part)
        volume().domain(part).enqueue(volume().planes(part, step));
      if (communicate) send_boundaries(step + 1);
      volume().bound_queues(done);
    }
    volume().synchronize();
  }

 private:
  // communication: begin
  /// Their halos of the step before are read, and their boundaries are in this part's halos.
  void await_neighbours() {
    for (std::size_t part = 0; part < volume().parts(); ++part)
      for (unsigned side = 0; side < sides; ++side)
        if (const auto other = volume().neighbour(part, side))
          volume().domain(part).edges.wait_for(volume().domain(*other).edges);
  }

  void send_boundaries(std::uint64_t step) {
    for (std::size_t part = 0; part < volume().parts(); ++part)
      for (unsigned side = 0; side < sides; ++side)
        if (const auto other = volume().neighbour(part, side))
          beeline::hpe::copy(volume().halo(*other, opposite(side), step), volume().boundary(part, side, step),
                             volume().halo_bytes(), volume().domain(part).edges);
  }
  // communication: end
};

}  // namespace

MethodInfo shared_devices() {
  return MethodInfo::of<SharedDevices>(
      {"shared_devices", "one thread drives all devices, and copies boundaries from device to device"});
}

}  // namespace stencil
