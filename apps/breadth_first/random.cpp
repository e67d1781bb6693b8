// SPDX-License-Identifier: Apache-2.0
#include "random.hpp"

namespace breadth_first {

Skip both(const Skip& one, const Skip& other) {
  Skip product{};
  for (int column = 0; column < 5; ++column) {
    Random state{};
    for (int i = 0; i < 5; ++i) state.last[i] = other.row[i][column];
    const Random after = one.from(state);
    for (int i = 0; i < 5; ++i) product.row[i][column] = after.last[i];
  }
  return product;
}

Skip skip_of(int log2, std::uint64_t times) {
  Skip power{}, result{};
  for (int i = 0; i < 5; ++i) result.row[i][i] = 1;
  for (int i = 1; i < 5; ++i) power.row[i][i - 1] = 1;
  power.row[0][0] = 107374182, power.row[0][4] = 104480;
  for (int i = 0; i < log2; ++i) power = both(power, power);
  for (; times > 0; times >>= 1, power = both(power, power))
    if ((times & 1u) != 0) result = both(result, power);
  return result;
}

Random seeded(std::uint64_t first, std::uint64_t second) {
  constexpr std::uint64_t low = 0x3fffffff;
  const auto number = [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits + 1); };
  return {{number(first & low), number(first >> 30 & low), number(second & low), number(second >> 30 & low),
           number((second >> 60 << 4) + (first >> 60))}};
}

}  // namespace breadth_first
