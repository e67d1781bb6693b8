// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: the discrete Fourier transform of one vector of complex numbers, of which each device has a part.

#include <cstddef>
#include <string>
#include <vector>

#include "common/devices.hpp"
#include "common/initial_value.hpp"
#include "complex.hpp"

namespace fft {

/// Sub-parts that the last step between devices makes of a part: on a GPU as many as a thread's registers hold, on a
/// host device as many as its cache holds lines at power-of-two distances.
constexpr unsigned splits_of_exchange(bool on_gpu) { return on_gpu ? 32 : 8; }
/// Sub-parts that a further pass over the memory makes of each of these, and neighbouring elements it loads at once.
constexpr unsigned splits_inside = 256, columns_inside = 16;
/// Elements of a vector that cuFFT transforms in one pass over the memory.
constexpr std::size_t most_of_one_pass = std::size_t{1} << 13;

/// A vector on devices: device d has the elements [d * part, (d + 1) * part).
struct Setup {
  apps::Devices devices;
  std::size_t count;  ///< complex elements of the whole vector, a power of two
  [[nodiscard]] std::size_t part() const { return count / devices.size(); }
  /// Sub-parts of a device's part, which the device transforms one by one. The last step between devices also does the
  /// steps that divide a part into `outer_splits`, and one more pass those that divide long ones into `inner_splits`
  /// each, so that a transform passes over the memory fewer times.
  [[nodiscard]] std::size_t splits() const { return outer_splits() * inner_splits(); }
  [[nodiscard]] std::size_t outer_splits() const {
    const unsigned splits = splits_of_exchange(devices.front().is_gpu());
    return devices.size() == 1 || part() < 2 * splits ? 1 : splits;
  }
  [[nodiscard]] std::size_t inner_splits() const {
    return devices.size() == 1 || part() / outer_splits() <= most_of_one_pass ? 1 : splits_inside;
  }
};

/// Parses numbers of elements separated by commas, each a power of two, with or without K, M, G (powers of 1024).
/// Throws invalid_argument, which quotes the wrong item.
[[nodiscard]] std::vector<std::size_t> parse_counts(const std::string& text);

/// The element `index` before the transform. Values are below 1.
BEELINE_HOST_DEVICE inline Complex initial_element(std::size_t index) {
  constexpr float scale = 1.0f / (2 * apps::largest_value);
  return {apps::initial_value(0, 0, index) * scale, apps::initial_value(0, 1, index) * scale};
}

/// Transforms in a row, of which each multiplies values by up to `count`, that stay within the range of float32.
[[nodiscard]] int transforms_in_range(std::size_t count);

/// The smallest frequency that sub-part `number` of `all` sub-parts of all devices has after the transform. Its element
/// m has the frequency m * all + this.
[[nodiscard]] std::size_t first_frequency(std::size_t number, std::size_t all);

/// The same vector in the order of frequencies.
///   parts  [all, elements of a sub-part], as the devices hold it after the transform
[[nodiscard]] std::vector<Complex> in_order(const std::vector<Complex>& parts, std::size_t all);

/// Checks, before anything is allocated, that the devices are a power of two, that each has at least two elements, and
/// that the memory suffices for the vectors, which are measured one after the other. Throws invalid_argument, or as
/// `apps::require_room` does.
///   verify  the host also holds the serial reference
void check(const apps::Devices& devices, const std::vector<std::size_t>& counts, bool verify);

}  // namespace fft
