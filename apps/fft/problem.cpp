// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace fft {

namespace {

using beeline::require;
using beeline::Status;

std::size_t parse_count(const std::string& item) {
  constexpr std::size_t largest = std::size_t{1} << 32;  // `root_of_unity` has 32 bits for an angle
  const std::optional<std::size_t> count = apps::parse_quantity(item);
  require(count && std::has_single_bit(*count) && *count >= 2 && *count <= largest, Status::invalid_argument,
          fmt::format("--size: '{}' is no number of elements; valid: powers of two from 2 to 4G", item));
  return *count;
}

}  // namespace

std::vector<std::size_t> parse_counts(const std::string& text) {
  std::vector<std::size_t> counts;
  for (const std::string& item : apps::list_items(text)) counts.push_back(parse_count(item));
  require(!counts.empty(), Status::invalid_argument, "--size: no vector is named");
  return counts;
}

int transforms_in_range(std::size_t count) {
  constexpr int exponents = 126;  // of float32; values are below 1 at first
  return exponents / std::bit_width(count);
}

std::size_t first_frequency(std::size_t number, std::size_t all) {
  std::size_t reversed = 0;
  for (std::size_t bit = 1; bit < all; bit <<= 1) reversed = reversed << 1 | ((number & bit) != 0 ? 1u : 0u);
  return reversed;
}

std::vector<Complex> in_order(const std::vector<Complex>& parts, std::size_t all) {
  std::vector<Complex> ordered(parts.size());
  const std::size_t part = parts.size() / all;
  for (std::size_t number = 0; number < all; ++number) {
    const std::size_t first = first_frequency(number, all);
    for (std::size_t m = 0; m < part; ++m) ordered[m * all + first] = parts[number * part + m];
  }
  return ordered;
}

void check(const apps::Devices& devices, const std::vector<std::size_t>& counts, bool verify) {
  constexpr std::size_t buffers = 3;  // source and destination of a step, and the partner's part or work memory
  constexpr std::size_t reference_bytes = 2 * sizeof(double) + 2 * sizeof(Complex);  // and the result, in both orders
  require(std::has_single_bit(devices.size()), Status::invalid_argument,
          fmt::format("{} devices: pairs exchange their parts, so the number is a power of two", devices.size()));
  for (const std::size_t count : counts) {
    const std::string problem = fmt::format("a vector of {} elements on {} devices", count, devices.size());
    require(count >= 2 * devices.size(), Status::invalid_argument,
            fmt::format("--size: {}: each device needs at least 2", problem));
    apps::require_room(devices, {.problem = problem,
                                 .device_bytes = buffers * count / devices.size() * sizeof(Complex),
                                 .first_bytes = buffers * (count - count / devices.size()) * sizeof(Complex),
                                 .reference_bytes = verify ? count * reference_bytes : 0});
  }
}

}  // namespace fft
