// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <algorithm>
#include <barrier>

#include "common/reference.hpp"

namespace stencil {

Serial::Serial(const Size& size, int threads)
    : size_(size), threads_(static_cast<int>(std::min(static_cast<std::size_t>(threads), size.z))) {
  field_.resize(size.stored());
  next_.resize(size.stored());
  apps::on_threads(threads_, std::size_t{0}, size.z + 2 * radius, [&](std::size_t first, std::size_t last) {
    for (std::size_t plane = first; plane < last; ++plane)
      for (std::size_t index = 0; index < size.plane(); ++index)
        field_[plane * size.plane() + index] = next_[plane * size.plane() + index] = initial_value(plane, index);
  });
}

void Serial::sweep_plane(std::size_t plane) {
  // The second derivative to eighth order: weights of the point, and of points at distances 1 to 4.
  const float weights[] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
  const std::size_t strides[] = {1, size_.width(), size_.plane()};
  for (std::size_t y = radius; y < size_.y + radius; ++y)
    for (std::size_t x = radius; x < size_.x + radius; ++x) {
      const std::size_t at = plane * strides[2] + y * strides[1] + x;
      float curvature = 3 * weights[0] * field_[at];
      for (std::size_t d = 1; d <= radius; ++d) {
        const auto pair = [&](std::size_t stride) { return field_[at - d * stride] + field_[at + d * stride]; };
        curvature += weights[d] * ((pair(strides[0]) + pair(strides[1])) + pair(strides[2]));
      }
      next_[at] = field_[at] + curvature / 16;
    }
}

void Serial::advance(int steps) {
  std::barrier step_done(threads_, [this]() noexcept { field_.swap(next_); });
  apps::on_threads(threads_, radius, size_.z + radius, [&](std::size_t first, std::size_t last) {
    for (int step = 0; step < steps; ++step) {
      for (std::size_t plane = first; plane < last; ++plane) sweep_plane(plane);
      step_done.arrive_and_wait();
    }
  });
}

}  // namespace stencil
