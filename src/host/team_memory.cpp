// SPDX-License-Identifier: Apache-2.0
// Symmetric memory of a team, which may be the world.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "host/profiler_range.hpp"
#include "host/ranges.hpp"
#include "host/world/exchange.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

constexpr std::uint64_t no_room = ~std::uint64_t{0};

/// A member's request with an offset that is free on that member, or the memory that the member frees.
struct TeamOffer {
  std::uint64_t bytes, heap, offset;

  [[nodiscard]] std::string text() const {
    const std::string place = offset == no_room ? "no offset (no room)" : fmt::format("offset {}", offset);
    return fmt::format("{} bytes at {} of the {} heap", bytes, place,
                       static_cast<Heap>(heap) == Heap::pinned ? "pinned" : "symmetric");
  }
};

/// A reserved offset, which is given back if the members agree on another.
class Reservation {
 public:
  Reservation(Heaps& heaps, Heap heap) : heaps_(heaps), heap_(heap) {}
  ~Reservation() { give_up(); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// Reserves the lowest free offset; with `most`, changes to the highest one up to `most`. Returns `no_room` if there
  /// is none.
  [[nodiscard]] std::uint64_t take(std::size_t bytes, std::optional<std::uint64_t> most) {
    if (most && offset_ <= *most) return offset_;
    give_up();
    try {
      offset_ = heaps_.take(heap_, bytes, most);
    } catch (const Error&) {
      full_ = std::current_exception();
    }
    return offset_;
  }
  /// Keeps the reservation; from now on operations may use its memory.
  [[nodiscard]] Heaps::Place keep() {
    const Heaps::Place kept{heap_, std::exchange(offset_, no_room)};
    heaps_.open(kept);
    return kept;
  }
  /// Throws the error of the last failed `take`.
  [[noreturn]] void refuse() const { std::rethrow_exception(full_); }

 private:
  void give_up() {
    if (offset_ != no_room) heaps_.give_back({heap_, std::exchange(offset_, no_room)});
  }

  Heaps& heaps_;
  const Heap heap_;
  std::uint64_t offset_ = no_room;
  std::exception_ptr full_;  ///< thrown after the exchange, in which other members wait for this rank
};

/// Throws if a member's offer differs from this member's; the error names both.
///   what, verb  for the error, as "allocations differ", "asks for"
template <class Differs>
void require_alike(const Team& team, const std::vector<std::optional<TeamOffer>>& all, const TeamOffer& mine,
                   const char* what, const char* verb, const Differs& differs) {
  const int rank = team.world().rank();
  for (std::size_t member = 0; member < all.size(); ++member)
    if (all[member] && differs(*all[member]))
      throw Error(Status::invalid_argument,
                  fmt::format("{0}: rank {2} {1} {3}, rank {4} {1} {5}", what, verb, rank, mine.text(),
                              team.world_rank(static_cast<int>(member)), all[member]->text()),
                  rank);
}

void require_room(const Team& team, const std::vector<std::optional<TeamOffer>>& all) {
  for (std::size_t member = 0; member < all.size(); ++member)
    if (all[member] && all[member]->offset == no_room)
      throw Error(
          Status::no_resource,
          fmt::format(
              "rank {} has no room for {} at the offset where the other ranks have it; set BEELINE_HEAP_BYTES or "
              "BEELINE_PINNED_HEAP_BYTES higher",
              team.world_rank(static_cast<int>(member)), all[member]->text()),
          team.world().rank());
}

}  // namespace

void* Team::allocate(std::size_t bytes, Heap heap) {
  const detail::ProfilerRange range("allocate");
  World::Implementation& world = world_.implementation();
  const bool is_world = this == &world_;
  constexpr const char *differ = "allocations differ", *asks = "asks for";
  Reservation place(world.memory->heaps(), heap);
  std::optional<std::uint64_t> most;
  if (!is_world) most = no_room - 1;
  for (bool same = false; !same;) {
    const TeamOffer mine{bytes, static_cast<std::uint64_t>(heap), place.take(bytes, most)};
    const auto all = detail::values_in(*this, "allocate", mine);
    require_alike(*this, all, mine, differ, asks,
                  [&](const TeamOffer& theirs) { return theirs.bytes != mine.bytes || theirs.heap != mine.heap; });
    if (mine.offset == no_room) place.refuse();
    require_room(*this, all);
    const auto elsewhere = [&](const TeamOffer& theirs) { return theirs.offset != mine.offset; };
    if (is_world) require_alike(*this, all, mine, differ, asks, elsewhere);
    same = true;
    for (const std::optional<TeamOffer>& theirs : all) {
      if (!theirs || !most) continue;
      same = same && !elsewhere(*theirs);
      most = std::min(*most, theirs->offset);
    }
  }
  std::byte* const memory = world.memory->heaps().address_of(place.keep());
  if (heap == Heap::pinned)
    std::memset(memory, 0, bytes);
  else
    world.zero(memory, bytes);
  barrier();
  return memory;
}

void Team::free(void* pointer) {
  if (pointer == nullptr) return;
  World::Implementation& world = world_.implementation();
  Heaps& heaps = world.memory->heaps();
  const std::optional<Heaps::Place> place = heaps.place_of(pointer);
  const std::optional<std::size_t> bytes = place ? heaps.bytes_at(*place) : std::nullopt;
  require(bytes.has_value(), Status::invalid_argument,
          fmt::format("{} is not allocated by rank {}'s world: freed before, or never", pointer, world.rank()));
  world.await_default_stream();
  const TeamOffer mine{*bytes, static_cast<std::uint64_t>(place->heap), place->offset};
  const auto all = detail::values_in(*this, "free", mine);  // after this no rank uses the memory
  require_alike(*this, all, mine, "ranks free different memory", "frees",
                [&](const TeamOffer& theirs) { return theirs.heap != mine.heap || theirs.offset != mine.offset; });
  // Messages that no member has waited for, such as credits, would change memory that was allocated again.
  if (world.routes->needs_engine(*this)) barrier();
  heaps.free(*place);
}

void* Team::translate(void* local, int peer) const {
  detail::require_symmetric(world_, {"at", "local"}, local, 1);
  return detail::in_slot_of(*this, local, peer);
}

void detail::free_with_owner(const TeamLife& life, Team& team, void* pointer) noexcept {
  if (pointer == nullptr || !life.is_usable() || team.failed() || team.world().failed() ||
      std::uncaught_exceptions() > 0)
    return;
  try {
    team.free(pointer);
  } catch (const std::exception& error) {
    // After a failure of the team or world the program's next call reports more.
    if (!team.failed() && !team.world().failed()) log(LogLevel::warning, error.what(), team.world().rank());
  }
}

}  // namespace beeline
