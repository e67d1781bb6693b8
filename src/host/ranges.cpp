// SPDX-License-Identifier: Apache-2.0
#include "host/ranges.hpp"

#include <fmt/format.h>

#include "beeline/device/impl/caller_check.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"

namespace beeline::detail {

namespace {

/// The part of a slot that contains `offset`.
const char* part_at(const SlotLayout& slot, std::uint64_t offset) {
  if (offset < slot.device_segments_offset()) return "symmetric heap";
  return offset >= slot.host_area_offset() && offset < slot.host_segments_offset() ? "pinned heap" : "segments";
}

/// Whether an address is in an area of segments of this rank's slot, by which operations name the parts of any rank
/// (`World::symmetric_address`).
bool is_in_segments(const Context& ctx, const void* address) {
  if (ctx.owner_of(address) != ctx.own_world_rank) return false;
  const SlotLayout slot{ctx.slot_shift};
  const std::uint64_t offset = ctx.offset_in_slot(address);
  return offset >= slot.host_segments_offset() || (offset >= slot.device_segments_offset() && offset < slot.half());
}

}  // namespace

void require_extent(const World& world, Argument argument, const void* address, std::size_t bytes) {
  const Context& ctx = world.host_context();
  const std::uint32_t owner = ctx.owner_of(address);
  if (owner == no_peer) return;
  const std::uint64_t offset = ctx.offset_in_slot(address), end = end_of_part(ctx, offset);
  const std::uint64_t room = offset < end ? end - offset : 0;
  if (bytes > room)
    throw Error(Status::invalid_argument,
                fmt::format("{}: {} {}: {} bytes, of which {} fit before the end of rank {}'s {}", argument.call,
                            argument.name, address, bytes, room, owner, part_at(SlotLayout{ctx.slot_shift}, offset)),
                world.rank());
  const Reach reach{address, bytes, 1};
  if (static_cast<int>(owner) == world.rank() && !is_allocated(ctx, reach))
    throw Error(Status::invalid_argument,
                fmt::format("{}: {}: {}", argument.call, argument.name,
                            describe(CallFault::not_allocated, bytes, address_bits(reach))),
                world.rank());
}

void require_mapped(const Context& ctx, const char* name, const void* address) {
  if (is_elsewhere(ctx, address))
    throw Error(Status::invalid_argument,
                fmt::format("the {}: {}", name,
                            describe(CallFault::own_end_elsewhere, ctx.owner_of(address),
                                     reinterpret_cast<std::uintptr_t>(address))),
                static_cast<int>(ctx.own_world_rank));
}

void refuse_not_symmetric(const World& world, Argument argument, const void* address) {
  throw Error(Status::invalid_argument,
              fmt::format("{}: {} {} is not in this rank's symmetric memory: pass an address of memory that "
                          "Team::allocate (in Python World.allocate), a SymmetricArray or Signals gave this rank",
                          argument.call, argument.name, address),
              world.rank());
}

void require_symmetric(const World& world, Argument argument, const void* address, std::size_t bytes) {
  if (!world_part<MemoryMap>(world).heaps().place_of(address)) refuse_not_symmetric(world, argument, address);
  require_extent(world, argument, address, bytes);
}

void require_named(const World& world, Argument argument, const void* address, std::size_t bytes) {
  if (is_in_segments(world.host_context(), address))
    require_extent(world, argument, address, bytes);
  else
    require_symmetric(world, argument, address, bytes);
}

}  // namespace beeline::detail
