// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>

#include "common/reference.hpp"

namespace jacobi {

Serial::Serial(const Size& size, int threads)
    : size_(size), threads_(static_cast<int>(std::min(static_cast<std::size_t>(threads), size.rows))) {
  field_.reserve(size.stored());
  for (std::size_t row = 0; row < size.rows + 2; ++row)
    for (std::size_t column = 0; column < size.columns + 2; ++column) field_.push_back(initial_value(row, column));
  next_ = field_;
}

void Serial::sweep_row(std::size_t row) {
  const std::size_t width = size_.columns + 2;
  for (std::size_t n = row * width + 1; n <= row * width + size_.columns; ++n)
    next_[n] = 0.25f * ((field_[n - width] + field_[n + width]) + (field_[n - 1] + field_[n + 1]));
}

void Serial::advance(int iterations) {
  std::barrier iteration_done(threads_, [this]() noexcept { field_.swap(next_); });
  apps::on_threads(threads_, std::size_t{1}, size_.rows + 1, [&](std::size_t first, std::size_t last) {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (std::size_t row = first; row < last; ++row) sweep_row(row);
      iteration_done.arrive_and_wait();
    }
  });
}

float Serial::max_change() const {
  float largest = 0;
  for (std::size_t n = 0; n < field_.size(); ++n) largest = std::max(largest, std::abs(field_[n] - next_[n]));
  return largest;
}

}  // namespace jacobi
