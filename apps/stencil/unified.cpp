// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method unified: every address is valid on every device, so the kernels read the neighbours' planes where they are.
/// Nothing is copied, and a step is one kernel for each device. Source: seed 001, listing 3.

#include "method.hpp"

namespace stencil {

namespace {

class Unified final : public MethodOnVolume {
 public:
  using MethodOnVolume::MethodOnVolume;

  void run(int steps, bool communicate) override {
    std::uint64_t step = take_steps(steps);
    for (int done = 0; done < steps; ++done, ++step) {
      if (communicate) await_neighbours();
      for (std::size_t part = 0; part < volume().parts(); ++part)
        volume().domain(part).enqueue_all(communicate ? planes_of_all(part, step) : volume().planes(part, step));
      volume().bound_queues(done);
    }
    volume().synchronize();
  }

 private:
  // communication: begin
  void await_neighbours() {
    for (std::size_t part = 0; part < volume().parts(); ++part)
      for (unsigned side = 0; side < sides; ++side)
        if (const auto other = volume().neighbour(part, side))
          volume().domain(part).edges.wait_for(volume().domain(*other).edges);
  }

  Planes planes_of_all(std::size_t part, std::uint64_t step) {
    Planes planes = volume().planes(part, step);
    if (const auto other = volume().neighbour(part, 0)) planes.below = volume().boundary(*other, 1, step);
    if (const auto other = volume().neighbour(part, 1)) planes.above = volume().boundary(*other, 0, step);
    return planes;
  }
  // communication: end
};

}  // namespace

MethodInfo unified() {
  return MethodInfo::of<Unified>({.name = "unified",
                                  .summary = "kernels read the neighbours' planes at their addresses",
                                  .why_not = apps::why_no_reach});
}

}  // namespace stencil
