// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "c/call.hpp"
#include "memory/gpu_pointers.hpp"

using namespace beeline;
using c::guarded;
using c::object_of;

namespace {

static_assert(sizeof(beeline_part) == 32 && offsetof(beeline_part, kind) == 4 && offsetof(beeline_part, bytes) == 8);
static_assert(offsetof(beeline_part, address) == 16 && offsetof(beeline_part, copies) == 24);
static_assert(BEELINE_HEAP_SYMMETRIC == static_cast<int>(Heap::symmetric));
static_assert(BEELINE_HEAP_PINNED == static_cast<int>(Heap::pinned));
static_assert(BEELINE_MEMORY_DEVICE == static_cast<int>(MemoryKind::device));
static_assert(BEELINE_MEMORY_PINNED == static_cast<int>(MemoryKind::pinned));
static_assert(BEELINE_MEMORY_HOST == static_cast<int>(MemoryKind::host));

/// The part of `rank` in a segment or in registered memory.
template <class Part>
const Part& part_of(const std::vector<Part>& parts, std::int32_t rank) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= parts.size())
    c::refuse("rank", fmt::format("{} in a world of {}", rank, parts.size()));
  return parts[static_cast<std::size_t>(rank)];
}

MemoryKind kind_of(gpu_memory::PointerKind kind) {
  if (kind == gpu_memory::PointerKind::device) return MemoryKind::device;
  return kind == gpu_memory::PointerKind::pinned ? MemoryKind::pinned : MemoryKind::host;
}

bool copies_reach(const SegmentPart& part) { return part.address != nullptr; }
bool copies_reach(const RegisteredPart& part) { return part.copies; }

/// Writes the part of `rank`.
template <class Part>
void get_part(const std::vector<Part>& parts, std::int32_t rank, beeline_part* part) {
  const Part& from = part_of(parts, rank);
  beeline_part& to = c::structure_of(part, "part");
  to.kind = static_cast<std::int32_t>(from.kind), to.bytes = from.bytes, to.address = from.address;
  to.copies = copies_reach(from) ? 1 : 0, to.reserved = 0;
}

/// Ends the object of a handle by `end(world)`, then frees the handle. A failure leaves the handle valid.
template <class Object, class End>
beeline_status destroy(const char* function, Object* handle, const char* argument, const End& end) noexcept {
  const beeline_status status = guarded(function, [&] {
    beeline_world& world = *object_of(handle, argument).world;
    const c::ExclusiveCall call(world.team, function);
    end(*world.world);
  });
  if (status == BEELINE_OK) delete handle;
  return status;
}

/// A range of a rank's registered memory.
RegisteredPlace place_of(const beeline_registered* registered, std::int32_t rank, std::size_t offset) {
  const RegisteredMemory& memory = object_of(registered, "registered").memory;
  static_cast<void>(part_of(memory.parts, rank));
  return {memory.id, rank, offset};
}

}  // namespace

beeline_status beeline_allocate(beeline_team* team, size_t bytes, int32_t heap, void** memory) noexcept {
  return c::collective("beeline_allocate", team, [&](Team& of) {
    c::require_enumerator(heap, 2, "heap");
    c::require_pointer(memory, "memory");
    *memory = of.allocate(bytes, static_cast<Heap>(heap));
  });
}

beeline_status beeline_allocate_signals(beeline_team* team, size_t count, int32_t heap, uint64_t** signals) noexcept {
  return c::collective("beeline_allocate_signals", team, [&](Team& of) {
    c::require_enumerator(heap, 2, "heap");
    c::require_pointer(signals, "signals");
    const Heap where = of.context().mixed ? Heap::pinned : static_cast<Heap>(heap);
    *signals = static_cast<std::uint64_t*>(of.allocate(detail::array_bytes(count, sizeof(std::uint64_t)), where));
  });
}

beeline_status beeline_free(beeline_team* team, void* memory) noexcept {
  return c::collective("beeline_free", team, [&](Team& of) {
    c::require_pointer(memory, "memory");
    of.free(memory);
  });
}

beeline_status beeline_address_on(beeline_team* team, const void* local, int32_t peer, void** address) noexcept {
  return guarded("beeline_address_on", [&] {
    const Team& of = *object_of(team, "team").team;
    c::require_pointer(local, "local");
    c::require_pointer(address, "address");
    auto* const bytes = static_cast<std::byte*>(const_cast<void*>(local));
    *address = of.at(bytes, static_cast<int>(c::peer_of(of, peer)));
  });
}

beeline_status beeline_segment_create(beeline_world* world, int32_t kind, size_t bytes,
                                      beeline_segment** segment) noexcept {
  return c::collective_of_world("beeline_segment_create", world, [&](World& of) {
    c::require_enumerator(kind, 3, "kind");
    c::require_pointer(segment, "segment");
    *segment =
        std::make_unique<beeline_segment>(*world, of.create_segment(static_cast<MemoryKind>(kind), bytes)).release();
  });
}

beeline_status beeline_segment_part(const beeline_segment* segment, int32_t rank, beeline_part* part) noexcept {
  return guarded("beeline_segment_part", [&] { get_part(object_of(segment, "segment").segment.parts, rank, part); });
}

beeline_status beeline_segment_destroy(beeline_segment* segment) noexcept {
  return destroy("beeline_segment_destroy", segment, "segment",
                 [&](World& world) { world.destroy_segment(segment->segment.id); });
}

beeline_status beeline_register(beeline_world* world, void* pointer, size_t bytes,
                                beeline_registered** registered) noexcept {
  return c::collective_of_world("beeline_register", world, [&](World& of) {
    c::require_memory(pointer, bytes, "pointer");
    c::require_pointer(registered, "registered");
    *registered = std::make_unique<beeline_registered>(*world, of.register_memory(pointer, bytes)).release();
  });
}

beeline_status beeline_registered_part(const beeline_registered* registered, int32_t rank,
                                       beeline_part* part) noexcept {
  return guarded("beeline_registered_part",
                 [&] { get_part(object_of(registered, "registered").memory.parts, rank, part); });
}

beeline_status beeline_registered_alias(const beeline_registered* registered, void** alias) noexcept {
  return guarded("beeline_registered_alias", [&] {
    c::require_pointer(alias, "alias");
    *alias = object_of(registered, "registered").memory.alias;
  });
}

beeline_status beeline_symmetric_address(beeline_world* world, const void* address, void** symmetric) noexcept {
  return guarded("beeline_symmetric_address", [&] {
    const World& of = *object_of(world, "world").world;
    c::require_pointer(address, "address");
    c::require_pointer(symmetric, "symmetric");
    *symmetric = of.symmetric_address(address);
  });
}

beeline_status beeline_memory_kind(const void* address, int32_t* kind) noexcept {
  return guarded("beeline_memory_kind", [&] {
    c::require_pointer(address, "address");
    c::require_pointer(kind, "kind");
    *kind = static_cast<std::int32_t>(kind_of(gpu_memory::describe(address).kind));
  });
}

beeline_status beeline_deregister(beeline_registered* registered) noexcept {
  return destroy("beeline_deregister", registered, "registered",
                 [&](World& world) { world.deregister_memory(registered->memory.id); });
}

beeline_status beeline_copy(beeline_world* world, void* destination, const void* source, size_t bytes) noexcept {
  return guarded("beeline_copy", [&] {
    World& of = *object_of(world, "world").world;
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    of.copy(destination, source, bytes);
  });
}

beeline_status beeline_copy_to_registered(beeline_registered* registered, int32_t rank, size_t offset,
                                          const void* source, size_t bytes) noexcept {
  return guarded("beeline_copy_to_registered", [&] {
    const RegisteredPlace place = place_of(registered, rank, offset);
    c::require_memory(source, bytes, "source");
    registered->world->world->copy(place, source, bytes);
  });
}

beeline_status beeline_copy_from_registered(void* destination, beeline_registered* registered, int32_t rank,
                                            size_t offset, size_t bytes) noexcept {
  return guarded("beeline_copy_from_registered", [&] {
    const RegisteredPlace place = place_of(registered, rank, offset);
    c::require_memory(destination, bytes, "destination");
    registered->world->world->copy(destination, place, bytes);
  });
}
