// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include "aggregator.hpp"

namespace breadth_first {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{alltoallv(), message(), put(), bitmap()};
  return all;
}

std::uint64_t method_bytes(std::uint64_t per_rank, std::uint64_t ranks, bool on_gpus) {
  const std::uint64_t bitmap_of_all = ranks * per_rank / 8;
  const std::uint64_t by_bitmaps = (3 + 2 * ranks) * bitmap_of_all;
  const std::uint64_t by_queues =
      queue_bytes(per_rank, ranks) + 2 * visit_bytes(per_rank, ranks) + 2 * buffer_bytes(ranks, on_gpus);
  constexpr std::uint64_t small_arrays = std::uint64_t{4} << 20;
  return std::max(by_bitmaps, by_queues) + small_arrays;
}

}  // namespace breadth_first
