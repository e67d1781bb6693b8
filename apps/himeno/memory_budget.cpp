// SPDX-License-Identifier: Apache-2.0
#include "memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/copy_bandwidth.hpp"
#include "domain.hpp"

namespace himeno {

namespace {

/// Bytes of rank 0's serial reference and of the fields that are compared with it.
std::size_t reference_bytes(const Size& size) {
  constexpr std::size_t arrays = 17;
  return arrays * sizeof(float) * size.points();
}

}  // namespace

void fit(beeline::Config& config, const Size& size, bool verify, const Machine& machine) {
  static_cast<void>(slab_of(size, config.size, config.size - 1));
  const Domain::Heaps heaps = Domain::heaps(size, config.size);
  apps::fit(config,
            {.problem = fmt::format("size {}x{}x{} on {} ranks", size.x, size.y, size.z, config.size),
             .symmetric_bytes = heaps.symmetric_bytes,
             .pinned_bytes = heaps.pinned_bytes,
             .reference_bytes = verify ? reference_bytes(size) : 0},
            machine);
  config.heap_bytes = std::max(config.heap_bytes, apps::copy_heap_bytes);
}

}  // namespace himeno
