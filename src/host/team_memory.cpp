// SPDX-License-Identifier: Apache-2.0
// Symmetric memory of a team's members alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "beeline/host/team.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

constexpr std::uint64_t no_room = ~std::uint64_t{0};

/// What a member asks for, and the highest place that it has for it; or what it frees.
struct Offer {
  std::uint64_t bytes, heap, offset;
};

/// A place that is taken, unless the members agree on another.
class Reservation {
 public:
  Reservation(World::Implementation& world, OffsetAllocator& heap) : world_(world), heap_(heap) {}
  ~Reservation() { give_up(); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// Takes the highest place, of `most` at most, in exchange for what it has; `no_room` if there is none.
  [[nodiscard]] std::uint64_t take(std::size_t bytes, std::uint64_t most) {
    if (offset_ <= most) return offset_;
    give_up();
    const std::lock_guard lock(world_.allocation_mutex);
    try {
      offset_ = heap_.allocate_high(bytes, most);
    } catch (const Error& full) {
      log(LogLevel::debug, full.what(), world_.rank);
    }
    return offset_;
  }
  [[nodiscard]] std::uint64_t keep() { return std::exchange(offset_, no_room); }

 private:
  void give_up() {
    if (offset_ == no_room) return;
    const std::lock_guard lock(world_.allocation_mutex);
    heap_.free(keep());
  }

  World::Implementation& world_;
  OffsetAllocator& heap_;
  std::uint64_t offset_ = no_room;
};

std::vector<Offer> offers(const std::vector<std::vector<std::byte>>& everyones) {
  std::vector<Offer> all(everyones.size());
  for (std::size_t member = 0; member < all.size(); ++member)
    std::memcpy(&all[member], everyones[member].data(), std::min(sizeof(Offer), everyones[member].size()));
  return all;
}

}  // namespace

void* Team::allocate(std::size_t bytes, Heap heap) {
  World::Implementation& world = world_.implementation();
  const bool pinned = heap == Heap::pinned;
  Reservation place(world, pinned ? *world.pinned_heap : *world.heap);
  for (std::uint64_t most = no_room - 1;;) {
    const Offer mine{bytes, static_cast<std::uint64_t>(heap), place.take(bytes, most)};
    const std::vector<Offer> all = offers(world.exchange_in(*this, "allocate", std::as_bytes(std::span(&mine, 1))));
    bool same = true;
    for (std::size_t member = 0; member < all.size(); ++member) {
      const Offer& theirs = all[member];
      require(theirs.bytes == mine.bytes && theirs.heap == mine.heap, Status::invalid_argument,
              fmt::format("allocations differ: rank {} of the team asks for {} bytes, rank {} for {}", rank(), bytes,
                          member, theirs.bytes));
      require(theirs.offset != no_room, Status::no_resource,
              fmt::format("rank {} of the team has no room for {} bytes in the {} heap at a place that the others have "
                          "free too; set BEELINE_HEAP_BYTES or BEELINE_PINNED_HEAP_BYTES higher",
                          member, bytes, pinned ? "pinned" : "symmetric"));
      same = same && theirs.offset == all[0].offset;
      most = std::min(most, theirs.offset);
    }
    if (same) break;
  }
  const std::size_t offset = place.keep();
  std::byte* const memory = (pinned ? world.pinned_start(world.rank) : world.heap_start(world.rank)) + offset;
  if (pinned)
    std::memset(memory, 0, bytes);
  else
    world.zero(memory, bytes);
  barrier();
  return memory;
}

void Team::free(void* pointer) {
  if (pointer == nullptr) return;
  World::Implementation& world = world_.implementation();
  const World::Implementation::Place place = world.place_of(pointer);
  {
    const std::lock_guard lock(world.allocation_mutex);
    require(place.heap != nullptr && place.heap->holds(place.offset), Status::invalid_argument,
            fmt::format("{} is not allocated by rank {}'s world: freed before, or never", pointer, world.rank));
  }
  constexpr std::uint32_t whatever_fails = 0;
  world.await(
      "the default stream", world.config.stream_deadline_ns, [&world] { return world.stream->drained(); },
      whatever_fails, world.stream.get());
  const Offer mine{0, place.heap == world.pinned_heap.get() ? 1u : 0u, place.offset};
  const std::vector<Offer> all =
      offers(world.exchange_in(*this, "free", std::as_bytes(std::span(&mine, 1))));  // nobody uses it any more
  for (std::size_t member = 0; member < all.size(); ++member)
    require(all[member].heap == mine.heap && all[member].offset == mine.offset, Status::invalid_argument,
            fmt::format("members free different memory: rank {} of the team offset {}, rank {} offset {}", rank(),
                        mine.offset, member, all[member].offset));
  const std::lock_guard lock(world.allocation_mutex);
  place.heap->free(place.offset);
}

}  // namespace beeline
