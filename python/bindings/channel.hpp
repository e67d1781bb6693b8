// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Channels of a team that Python objects share: `beeline.Collectives`, `beeline.Messages`.

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "joined_world.hpp"
#include "team.hpp"
#include "unlocked.hpp"

namespace beeline::python {

/// The owner of the members of a channel: a world or a team.
using Members = std::variant<std::shared_ptr<JoinedWorld>, TeamObject>;

using Counts = std::vector<std::size_t>;

/// Offsets of consecutive pieces; nothing unless each rank has one piece and the lengths add up to `all`.
[[nodiscard]] inline std::optional<Counts> places_of(const Counts& lengths, std::size_t ranks, std::size_t all) {
  Counts places;
  std::size_t place = 0;
  for (const std::size_t length : lengths) {
    if (length > all - place) return std::nullopt;
    places.push_back(place);
    place += length;
  }
  return places.size() == ranks && place == all ? std::optional(places) : std::nullopt;
}

/// A channel that its world keeps, because destroying it is collective: until `free`, or until all ranks have dropped
/// it and a heap is full.
template <class Channel>
class ChannelObject {
 public:
  /// Collective. `name`, a literal, is the channel's name in errors.
  template <class Options>
  ChannelObject(const char* name, const Members& members, const Options& options) : name_(name) {
    const auto* const some = std::get_if<TeamObject>(&members);
    world_ = some != nullptr ? some->joined() : std::get<std::shared_ptr<JoinedWorld>>(members);
    const std::shared_ptr<Team> team = some != nullptr ? some->team() : nullptr;
    World& world = world_->world();
    Team& all = team ? *team : world;
    const auto make = [&] { return std::unique_ptr<Kept>(new Kept{team, Channel(all, options)}); };
    // Only a team's members make its channels, so the world's ranks cannot free together what they have dropped.
    kept_ = &world_->adopt(unlocked([&] { return world_->make_room_for(make, team == nullptr); }, &all));
    if (!team) number_ = world_->number_shared();
  }
  ChannelObject(const ChannelObject&) = delete;
  ChannelObject& operator=(const ChannelObject&) = delete;
  ~ChannelObject() {
    using Dropped = JoinedWorld::Dropped;
    if (kept_ != nullptr)
      world_->drop({number_ == 0 ? Dropped::Kind::of_team : Dropped::Kind::adopted, number_, kept_, &kept_->channel});
  }

  /// Collective.
  void free() {
    world_->destroy(kept_, &channel());
    kept_ = nullptr;
  }

 protected:
  /// From now on, dropping the object does not free the channel: only `free` or leaving the world does.
  void keep_when_dropped() { number_ = 0; }
  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  /// Throws invalid_argument when the channel was freed, or the world was left.
  [[nodiscard]] Channel& channel() const {
    static_cast<void>(world_->world());
    if (kept_ == nullptr) throw Error(Status::invalid_argument, fmt::format("these {} were freed", name_));
    return kept_->channel;
  }

 private:
  struct Kept {
    std::shared_ptr<Team> team;  ///< outlives the channel; nullptr: the members are the world's
    Channel channel;
  };

  const char* name_;
  std::shared_ptr<JoinedWorld> world_;
  Kept* kept_ = nullptr;
  std::uint64_t number_ = 0;  ///< among objects that all ranks make; 0: the channel is a team's, or kept when dropped
};

}  // namespace beeline::python
