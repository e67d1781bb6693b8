// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <algorithm>
#include <barrier>
#include <numeric>

#include "common/reference.hpp"

namespace himeno {

Serial::Serial(const Size& size, Data data, int threads)
    : size_(size), threads_(std::clamp(threads, 1, size.z - 2)), row_(static_cast<std::size_t>(size.x)),
      plane_(row_ * static_cast<std::size_t>(size.y)), plane_gosa_(static_cast<std::size_t>(size.z), 0.0) {
  for (std::vector<float>* array :
       {&a_[0], &a_[1], &a_[2], &a_[3], &b_[0], &b_[1], &b_[2], &c_[0], &c_[1], &c_[2], &bnd_, &wrk1_, &p_})
    array->resize(size.points());
  apps::on_threads(threads_, 0, size.z, [&](int first, int last) { fill(data, first, last); });
  next_ = p_;
}

std::size_t Serial::index(int x, int y, int z) const {
  return static_cast<std::size_t>(z) * plane_ + static_cast<std::size_t>(y) * row_ + static_cast<std::size_t>(x);
}

void Serial::fill(Data data, int first_plane, int last_plane) {
  const std::pair<Array, std::vector<float>*> arrays[] = {
      {Array::a0, &a_[0]}, {Array::a1, &a_[1]},   {Array::a2, &a_[2]}, {Array::a3, &a_[3]}, {Array::b0, &b_[0]},
      {Array::b1, &b_[1]}, {Array::b2, &b_[2]},   {Array::c0, &c_[0]}, {Array::c1, &c_[1]}, {Array::c2, &c_[2]},
      {Array::bnd, &bnd_}, {Array::wrk1, &wrk1_}, {Array::p, &p_}};
  for (const auto& [array, values] : arrays)
    for (int z = first_plane; z < last_plane; ++z)
      for (int y = 0; y < size_.y; ++y)
        for (int x = 0; x < size_.x; ++x) (*values)[index(x, y, z)] = initial_value(data, size_, array, x, y, z);
}

inline float Serial::residual(const std::vector<float>& p, std::size_t n) const {
  const std::size_t i = 1, j = row_, k = plane_;
  const float s0 = a_[0][n] * p[n + i] + a_[1][n] * p[n + j] + a_[2][n] * p[n + k] +
                   b_[0][n] * (p[n + i + j] - p[n + i - j] - p[n - i + j] + p[n - i - j]) +
                   b_[1][n] * (p[n + j + k] - p[n - j + k] - p[n + j - k] + p[n - j - k]) +
                   b_[2][n] * (p[n + i + k] - p[n - i + k] - p[n + i - k] + p[n - i - k]) + c_[0][n] * p[n - i] +
                   c_[1][n] * p[n - j] + c_[2][n] * p[n - k] + wrk1_[n];
  return (s0 * a_[3][n] - p[n]) * bnd_[n];
}

void Serial::sweep_plane(int z) {
  double gosa = 0;
  for (int y = 1; y < size_.y - 1; ++y)
    for (int x = 1; x < size_.x - 1; ++x) {
      const std::size_t n = index(x, y, z);
      const float ss = residual(p_, n);
      gosa += static_cast<double>(ss) * static_cast<double>(ss);
      next_[n] = p_[n] + omega * ss;
    }
  plane_gosa_[static_cast<std::size_t>(z)] = gosa;
}

void Serial::advance(int iterations) {
  std::barrier iteration_done(threads_, [this]() noexcept { p_.swap(next_); });
  apps::on_threads(threads_, 1, size_.z - 1, [&](int first, int last) {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (int z = first; z < last; ++z) sweep_plane(z);
      iteration_done.arrive_and_wait();
    }
  });
}

double Serial::gosa() const { return std::accumulate(plane_gosa_.begin(), plane_gosa_.end(), 0.0); }

float Serial::gosa_float32() const {
  // k is the slowest axis here, but the fastest in the official order: gather a few columns at a time while reading
  // memory in order.
  constexpr int columns = 16;
  std::vector<float> squares[columns];
  float gosa = 0;
  for (int first = 1; first < size_.x - 1; first += columns) {
    const int last = std::min(first + columns, size_.x - 1);
    const std::size_t per_column = static_cast<std::size_t>(size_.y) * static_cast<std::size_t>(size_.z);
    for (std::vector<float>& column : squares) column.assign(per_column, 0.0f);
    for (int z = 1; z < size_.z - 1; ++z)
      for (int y = 1; y < size_.y - 1; ++y)
        for (int x = first; x < last; ++x) {
          const float ss = residual(next_, index(x, y, z));
          squares[x - first][static_cast<std::size_t>(y) * static_cast<std::size_t>(size_.z) +
                             static_cast<std::size_t>(z)] = ss * ss;
        }
    for (int x = first; x < last; ++x)
      for (const float square : squares[x - first]) gosa += square;  // boundary points hold zeros, which change nothing
  }
  return gosa;
}

}  // namespace himeno
