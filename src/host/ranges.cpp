// SPDX-License-Identifier: Apache-2.0
#include "host/ranges.hpp"

#include <fmt/format.h>

#include "beeline/device/impl/caller_check.hpp"
#include "beeline/host/team.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"

namespace beeline::detail {

namespace {

/// Whether an offset in a slot is in an area of segments.
bool is_in_segments(SlotLayout slot, std::uint64_t offset) {
  return offset >= slot.host_segments_offset() || (offset >= slot.device_segments_offset() && offset < slot.half());
}

/// The part of a slot that contains `offset`.
const char* part_at(SlotLayout slot, std::uint64_t offset) {
  if (is_in_segments(slot, offset)) return "segment";
  if (offset < slot.device_segments_offset()) return "symmetric heap";
  return offset < slot.host_area_offset() ? "aliases" : "pinned heap";
}

/// Whether an address is in a part of this rank's slot by which operations name memory of other ranks: an area of
/// segments (`World::symmetric_address`), or the aliases (`RegisteredMemory::alias`).
bool names_others_memory(const Context& ctx, const void* address) {
  if (ctx.owner_of(address) != ctx.own_world_rank) return false;
  const SlotLayout slot{ctx.slot_shift};
  const std::uint64_t offset = ctx.offset_in_slot(address);
  return is_in_segments(slot, offset) || MemoryAliases::may_hold(slot, offset);
}

/// Bytes from an address in a slot to the end of the heap, the rank's part of a segment, or the aliases in which it is;
/// 0 if it is in none of them. Aliases stand for memory of other nodes alone.
std::uint64_t room_from(const World& world, const void* address) {
  const Context& ctx = world.host_context();
  const SlotLayout slot{ctx.slot_shift};
  const std::uint64_t offset = ctx.offset_in_slot(address);
  if (is_in_segments(slot, offset)) return world_part<MemoryMap>(world).node().room_in_segment(address);
  const bool is_alias = MemoryAliases::may_hold(slot, offset) && is_elsewhere(ctx, address);
  const std::uint64_t end = is_alias ? slot.host_area_offset() : end_of_part(ctx, offset);
  return offset < end ? end - offset : 0;
}

}  // namespace

void require_extent(const World& world, Argument argument, const void* address, std::size_t bytes) {
  const Context& ctx = world.host_context();
  const std::uint32_t owner = ctx.owner_of(address);
  if (owner == no_peer) return;
  if (const std::uint64_t room = room_from(world, address); bytes > room)
    throw Error(
        Status::invalid_argument,
        fmt::format("{}: {} {}: {} bytes, of which {} fit before the end of rank {}'s {}", argument.call, argument.name,
                    address, bytes, room, owner, part_at(SlotLayout{ctx.slot_shift}, ctx.offset_in_slot(address))),
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

void* in_slot_of(const Team& team, void* local, int peer) {
  // Called for each transfer, so texts are made for errors only.
  if (peer < 0 || peer >= team.size())
    throw Error(Status::invalid_argument, fmt::format("peer {} of a team of {}", peer, team.size()));
  const Context& ctx = team.context();
  const auto slots = static_cast<std::ptrdiff_t>(ctx.world_rank(static_cast<std::uint32_t>(peer))) - ctx.own_world_rank;
  return static_cast<std::byte*>(local) + slots * (std::ptrdiff_t{1} << ctx.slot_shift);
}

void* named_at(const Team& team, Argument argument, void* local, std::size_t bytes, int peer) {
  const World& world = team.world();
  void* const there = in_slot_of(team, local, peer);
  if (names_others_memory(world.host_context(), local))
    require_extent(world, argument, there, bytes);
  else
    require_symmetric(world, argument, local, bytes);
  return there;
}

}  // namespace beeline::detail
