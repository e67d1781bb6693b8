// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/distributed_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "beeline/core/error.hpp"
#include "host/profiler_range.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

AddressMap World::address_map() const {
  const Implementation& world = *implementation_;
  return {world.memory->range().base(), config().slot_shift, static_cast<std::uint32_t>(size()),
          &world.memory->areas().heap_header()->addresses};
}

namespace detail {

ChunkTable make_distributed(World& on, std::size_t bytes, std::size_t chunk_bytes, MemoryKind kind) {
  const ProfilerRange range("make a distributed array");
  World::Implementation& world = on.implementation();
  world.begin_collective("make_distributed");
  const ChunkTable chunks = world.memory->distributed().create({bytes, chunk_bytes, kind});
  world.memory->note_arrays();
  world.publish_addresses();
  if (on.device().is_gpu() && kind == MemoryKind::device)  // host memory is made zero
    for (std::size_t start = 0; start < chunks.bytes; start += chunks.chunk_bytes())
      if (chunks.owner_at(start) == static_cast<std::uint32_t>(on.rank()))
        world.zero(reinterpret_cast<std::byte*>(chunks.base) + start,
                   std::min<std::size_t>(chunks.chunk_bytes(), chunks.bytes - start));
  on.barrier();
  return chunks;
}

bool spans_nodes(const World& world) { return world.implementation().membership->spans_nodes(); }

void require_on_node(const World& on, const ChunkTable& chunks, std::size_t first, std::size_t bytes) {
  const World::Implementation& world = on.implementation();
  for (std::size_t at = first; at < first + bytes; at = (at / chunks.chunk_bytes() + 1) * chunks.chunk_bytes())
    if (const auto owner = static_cast<int>(chunks.owner_at(at)); !world.membership->is_local(owner))
      throw Error(Status::unreachable,
                  fmt::format("a distributed array: loads and stores do not reach byte {}: {}; copy it (World::copy)",
                              at, world.routes->why_not_direct(owner)),
                  on.rank());
}

void free_distributed(World& on, std::uintptr_t base) {
  World::Implementation& world = on.implementation();
  world.await_default_stream();
  world.begin_collective("free_distributed");
  world.memory->distributed().free(base);
  world.memory->note_arrays();
  world.publish_addresses();
}

}  // namespace detail

}  // namespace beeline
