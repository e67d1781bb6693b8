// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <numeric>

#include "stream.hpp"

namespace random_access {

std::vector<std::uint64_t> serial_table(const Layout& layout, const Run& run) {
  std::vector<std::uint64_t> table(std::size_t{1} << layout.bits);
  std::iota(table.begin(), table.end(), std::uint64_t{0});
  const std::uint64_t mask = table.size() - 1;
  for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
    const Piece piece = run.of(rank, layout.ranks);
    std::uint64_t number = starts(piece.first);
    for (std::uint64_t i = 0; i < piece.count; ++i) {
      number = next_number(number);
      table[number & mask] ^= number;
    }
  }
  return table;
}

}  // namespace random_access
