// SPDX-License-Identifier: Apache-2.0
#include "local_transform.hpp"

#include <bit>
#include <utility>

#include "beeline/hpe/memory.hpp"
#include "cufft.hpp"
#include "kernels.hpp"

namespace fft {

namespace {

class KernelPasses final : public LocalTransform {
 public:
  KernelPasses(beeline::hpe::Device device, std::size_t count, std::size_t transforms)
      : count_(count), transforms_(transforms), roots_(device, count / 2 * sizeof(Complex)) {
    beeline::hpe::Stream stream(device);
    enqueue_roots(stream, roots_.as<Complex>(), static_cast<unsigned>(std::countr_zero(count)));
    stream.synchronize();
  }

  [[nodiscard]] bool is_in_place() const override { return false; }
  Complex* enqueue(beeline::hpe::Stream& stream, Complex* elements, Complex* other) override {
    for (std::size_t stride = 1; stride < count_; stride *= 2) {
      enqueue_pass(stream, other, elements, roots_.as<Complex>(), count_, transforms_, stride);
      std::swap(elements, other);
    }
    return elements;
  }

 private:
  std::size_t count_, transforms_;
  beeline::hpe::DeviceMemory roots_;
};

}  // namespace

std::unique_ptr<LocalTransform> make_local_transform(beeline::hpe::Device device, std::size_t count,
                                                     std::size_t transforms) {
  if (device.is_gpu()) return std::make_unique<CufftTransform>(device, count, transforms);
  return std::make_unique<KernelPasses>(device, count, transforms);
}

int least_passes(std::size_t count) {
  constexpr int log_inside = 14;  // 128 KiB of shared memory
  return (std::countr_zero(count) + log_inside - 1) / log_inside;
}

}  // namespace fft
