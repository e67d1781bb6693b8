// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include "problem.hpp"

namespace ring_reduction {

namespace {

float reduced(std::size_t index, int ranks, std::uint32_t set, int reductions) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += initial_value(set, static_cast<std::uint32_t>(rank), index);
  // From the second reduction on, all ranks have equal values.
  for (int more = 1; more < reductions; ++more) sum *= static_cast<float>(ranks);
  return sum;
}

}  // namespace

std::vector<float> serial_reduction(std::size_t count, int ranks, std::uint32_t set, int reductions, int threads) {
  std::vector<float> result(count);
  apps::on_threads(threads, std::size_t{0}, count, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) result[i] = reduced(i, ranks, set, reductions);
  });
  return result;
}

}  // namespace ring_reduction
