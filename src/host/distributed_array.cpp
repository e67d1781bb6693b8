// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/distributed_array.hpp"

#include <algorithm>
#include <memory>

#include "host/profiler_range.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

AddressMap World::address_map() const {
  const Implementation& world = *implementation_;
  return {world.memory->range().base(), config().slot_shift, static_cast<std::uint32_t>(size()),
          &world.heap_header(rank())->addresses};
}

void World::Implementation::publish_addresses() {
  const std::unique_ptr<AddressTable> table = addresses.snapshot();
  write(&heap_header(rank)->addresses, table.get(), sizeof *table);
}

namespace detail {

ChunkTable make_distributed(World& on, std::size_t bytes, std::size_t chunk_bytes, MemoryKind kind) {
  const ProfilerRange range("make a distributed array");
  World::Implementation& world = on.implementation();
  world.require_one_node(on, "a distributed array");
  world.begin_collective("make_distributed");
  const ChunkTable chunks = world.distributed->create({bytes, chunk_bytes, kind});
  world.addresses.set_arrays(world.distributed->arrays(), world.distributed->place_bytes());
  world.publish_addresses();
  if (world.device().is_gpu() && kind == MemoryKind::device)  // host memory is made zero
    for (std::size_t start = 0; start < chunks.bytes; start += chunks.chunk_bytes())
      if (chunks.owner_at(start) == static_cast<std::uint32_t>(world.rank))
        world.zero(reinterpret_cast<std::byte*>(chunks.base) + start,
                   std::min<std::size_t>(chunks.chunk_bytes(), chunks.bytes - start));
  on.barrier();
  return chunks;
}

void free_distributed(World& on, std::uintptr_t base) {
  World::Implementation& world = on.implementation();
  world.await_default_stream();
  world.begin_collective("free_distributed");
  world.distributed->free(base);
  world.addresses.set_arrays(world.distributed->arrays(), world.distributed->place_bytes());
  world.publish_addresses();
}

}  // namespace detail

}  // namespace beeline
