// SPDX-License-Identifier: Apache-2.0
// Registration of existing memory, and copies to and from registered memory.
#include "beeline/memory/registered_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "host/profiler_range.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

/// Calls `move(offset, bytes)` for pieces of at most `most` bytes, the size of a buffer.
template <class Move>
void in_pieces(std::size_t bytes, std::size_t most, Move move) {
  for (std::size_t offset = 0; offset < bytes; offset += most) move(offset, std::min(most, bytes - offset));
}

}  // namespace

const RegisteredMemory& World::register_memory(void* pointer, std::size_t bytes) {
  const detail::ProfilerRange range("register memory");
  Implementation& world = *implementation_;
  world.begin_collective("register_memory");
  const RegisteredMemory& memory = world.memory->registration().add(pointer, bytes);
  world.memory->note_registered();
  world.publish_addresses();
  return memory;
}

void World::deregister_memory(std::uint32_t id) {
  Implementation& world = *implementation_;
  world.begin_collective("deregister_memory");
  world.memory->registration().remove(id);
  world.memory->note_registered();
  world.publish_addresses();
}

Registration::Address World::Implementation::reach(const RegisteredPlace& place, std::size_t bytes) const {
  const Registration::Address there = memory->registration().reach(place, bytes);
  const RankHealth health = bootstrap->health()[static_cast<std::size_t>(place.rank)];
  require(health.state == RankState::healthy, Status::peer_died,
          fmt::format("rank {}'s registered memory is gone: {}", place.rank,
                      health.state == RankState::left ? "it has left the world" : health.reason));
  return there;
}

void World::copy(const RegisteredPlace& destination, const void* source, std::size_t bytes) {
  const detail::ProfilerRange range("copy");
  Implementation& world = *implementation_;
  const Registration::Address there = world.reach(destination, bytes);
  if (bytes == 0) return;
  if (there.address != nullptr) return world.write(there.address, source, bytes);
  if (!world.streams->reach_gpus()) return there.process->write(there.there, source, bytes);
  std::vector<std::byte> buffer(std::min(bytes, config().chunk_bytes));  // the source may be GPU memory
  in_pieces(bytes, buffer.size(), [&](std::size_t offset, std::size_t piece) {
    world.write(buffer.data(), static_cast<const std::byte*>(source) + offset, piece);
    there.process->write(there.there + offset, buffer.data(), piece);
  });
}

void World::copy(void* destination, const RegisteredPlace& source, std::size_t bytes) {
  const detail::ProfilerRange range("copy");
  Implementation& world = *implementation_;
  const Registration::Address there = world.reach(source, bytes);
  if (bytes == 0) return;
  if (there.address != nullptr) return world.write(destination, there.address, bytes);
  if (!world.streams->reach_gpus()) return there.process->read(destination, there.there, bytes);
  std::vector<std::byte> buffer(std::min(bytes, config().chunk_bytes));  // the destination may be GPU memory
  in_pieces(bytes, buffer.size(), [&](std::size_t offset, std::size_t piece) {
    there.process->read(buffer.data(), there.there + offset, piece);
    world.write(static_cast<std::byte*>(destination) + offset, buffer.data(), piece);
  });
}

}  // namespace beeline
