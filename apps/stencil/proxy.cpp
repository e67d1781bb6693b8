// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method proxy, the pattern of CUDA 3: a device belongs to one CPU thread, and no other thread copies from it. Each
/// thread copies its boundaries to host memory, from where the neighbours' threads copy them to their devices.
/// Source: seed 001, listing 1.

#include <fmt/format.h>

#include <array>
#include <memory>

#include "beeline/hpe/copy.hpp"
#include "common/device_threads.hpp"
#include "method.hpp"

namespace stencil {

namespace {

namespace hpe = beeline::hpe;

class Proxy final : public MethodOnVolume {
 public:
  explicit Proxy(const Setup& setup) : MethodOnVolume(setup) {
    // communication: begin
    for (std::size_t part = 0; part < volume().parts(); ++part)
      for (unsigned side = 0; side < sides; ++side) {
        boundaries_[side].emplace_back(volume().halo_bytes());
        halo_ready_[side].push_back(std::make_unique<apps::Semaphore>());
        boundary_consumed_[side].push_back(std::make_unique<apps::Semaphore>());
      }
    // communication: end
  }

  void run(int steps, bool communicate) override {
    const std::uint64_t first = take_steps(steps), end = first + static_cast<std::uint64_t>(steps);
    apps::on_device_threads(volume().parts(), [&](std::size_t part) {
      Domain& domain = volume().domain(part);
      for (std::uint64_t step = first; step < end; ++step) {
        domain.enqueue(volume().planes(part, step));
        if (communicate) exchange(part, step + 1);
        domain.synchronize();
      }
    });
  }

 private:
  // communication: begin
  using Semaphores = std::vector<std::unique_ptr<apps::Semaphore>>;

  void exchange(std::size_t part, std::uint64_t step) {
    for (unsigned side = 0; side < sides; ++side)
      if (volume().neighbour(part, side)) send_to_host(part, side, step);
    for (unsigned side = 0; side < sides; ++side)
      if (const auto other = volume().neighbour(part, side)) halo_ready_[opposite(side)][*other]->post();
    for (unsigned side = 0; side < sides; ++side)
      if (const auto other = volume().neighbour(part, side)) receive_from_host(part, side, *other, step);
    for (unsigned side = 0; side < sides; ++side)
      if (volume().neighbour(part, side)) boundary_consumed_[side][part]->wait(text("boundary_consumed", part, step));
  }

  void send_to_host(std::size_t part, unsigned side, std::uint64_t step) {
    hpe::Stream& stream = volume().domain(part).edges;
    hpe::copy(boundaries_[side][part].data(), volume().boundary(part, side, step), volume().halo_bytes(), stream);
    stream.synchronize();
  }

  void receive_from_host(std::size_t part, unsigned side, std::size_t other, std::uint64_t step) {
    hpe::Stream& stream = volume().domain(part).edges;
    halo_ready_[side][part]->wait(text("halo_ready", part, step));
    hpe::copy(volume().halo(part, side, step), boundaries_[opposite(side)][other].data(), volume().halo_bytes(),
              stream);
    stream.synchronize();
    boundary_consumed_[opposite(side)][other]->post();
  }

  static std::string text(const char* semaphore, std::size_t part, std::uint64_t step) {
    return fmt::format("semaphore {} of part {} before step {}", semaphore, part, step);
  }

  std::array<std::vector<hpe::PinnedMemory>, sides> boundaries_;  ///< in host memory, of each part
  std::array<Semaphores, sides> halo_ready_;                      ///< a neighbour's boundary is in host memory
  std::array<Semaphores, sides> boundary_consumed_;               ///< the neighbour has copied the part's boundary
  // communication: end
};

}  // namespace

MethodInfo proxy() {
  return MethodInfo::of<Proxy>(
      {"proxy",
       "one thread a device; boundaries go through host memory, in turns by semaphores: the pattern of CUDA 3"});
}

}  // namespace stencil
