// SPDX-License-Identifier: Apache-2.0
#include "host/reachable_pieces.hpp"

#include "beeline/host/world.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

void ReachablePieces::show(Stream& stream) {
  std::size_t count = 0;
  bool has_changed = false;
  for (const std::span<const std::byte> piece : world_part<MemoryMap>(team_.world()).range().pieces()) {
    if (count == most || !is_reachable(piece)) continue;
    const ReachablePiece reachable{reinterpret_cast<std::uintptr_t>(piece.data()), piece.size()};
    has_changed |= count >= count_ || shown_.data()[count] != reachable;
    shown_.data()[count++] = reachable;
  }
  count_ = count;
  if (has_changed) stream.copy(pieces_.data(), shown_.data(), count * sizeof(ReachablePiece));
}

/// Whether this rank's kernels reach a piece of memory.
bool ReachablePieces::is_reachable(std::span<const std::byte> piece) const {
  World& world = team_.world();
  const Routes& routes = world_part<Routes>(world);
  AddressRange& range = world_part<MemoryMap>(world).range();
  const int owner = range.owner_of(piece.data());
  if (owner < 0 || (!world.device().is_gpu() && range.is_gpu_memory(piece.data()))) return false;
  return routes.to_gpu_of(owner).is_direct() && routes.to(owner).is_direct();
}

}  // namespace beeline
