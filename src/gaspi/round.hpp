// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rounds: how the service threads of all ranks agree on what they do together. In a round each rank contributes its
/// pending requests, and every rank computes the same plan from all contributions. Nothing here communicates.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gaspi/request.hpp"

namespace beeline::gaspi {

/// A pending request as other ranks see it.
struct Item {
  Action action;
  Memory kind = Memory::none;
  bool has_flags_on_device = false;
  std::uint8_t existing = 0;  ///< 0: new memory; else 1 + the remainder of the address by 16
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;    ///< of `dissolve` the team's serial number; else a hash of `ranks`
  std::uint32_t count = 0;  ///< members of the group
  std::vector<int> ranks;   ///< of `create` and `commit`: only from the first member, to keep contributions short
};

/// Whether all members of a group have to make the request.
[[nodiscard]] bool is_of_group(Action action);
/// What the rank `rank` contributes for a request.
[[nodiscard]] Item item_of(const Request& request, int rank);
[[nodiscard]] std::vector<std::byte> encode(const std::vector<Item>& items);
/// Throws Failure for bytes that `encode` does not make.
[[nodiscard]] std::vector<Item> decode(std::span<const std::byte> bytes);

/// A request by the rank that made it and its index in the rank's contribution.
struct ItemPlace {
  int rank;
  std::size_t index;
};

/// What all ranks do in a round, in the order of the members.
struct Plan {
  /// A rank's segment that is made.
  struct Part {
    ItemPlace of;
    std::uint32_t id;
    std::uint64_t bytes;
    Memory kind;
    bool has_flags_on_device;
    std::uint32_t remainder;     ///< of existing memory: bytes from a multiple of 16 to the segment
    std::vector<int> announced;  ///< ranks that it is registered with, beside its owner
  };
  struct Announcement {
    ItemPlace of;
    std::uint32_t id;
    std::vector<int> ranks;
  };
  struct Removal {
    ItemPlace of;
    std::uint32_t id;
  };
  struct Team {
    std::vector<int> ranks;
    std::vector<ItemPlace> of;  ///< each member's request
  };
  struct End {
    std::uint64_t serial;
    std::vector<ItemPlace> of;
  };

  std::vector<ItemPlace> kills;  ///< if there are any, the round does nothing else
  std::vector<int> killed;       ///< the ranks that end
  std::vector<Removal> removals;
  std::vector<std::vector<Part>> made;  ///< new memory, made together: a rank has one part of each
  std::vector<Part> existing;           ///< the program's memory, registered one after the other
  std::vector<Announcement> announcements;
  std::vector<std::vector<Team>> teams;  ///< made together: no rank is in two teams of one
  std::vector<End> ends;                 ///< of teams that no member uses any more
  bool leaves = false;

  [[nodiscard]] bool is_empty() const {
    return kills.empty() && removals.empty() && made.empty() && existing.empty() && announcements.empty() &&
           teams.empty() && ends.empty() && !leaves;
  }
};

/// The members of the teams that exist, by serial number.
using TeamMembers = std::vector<std::pair<std::uint64_t, std::vector<int>>>;

/// Computes the plan.
///   items    [ranks] the contributions; of ranks that have failed none
///   healthy  [ranks]
[[nodiscard]] Plan plan_round(const std::vector<std::vector<Item>>& items, const std::vector<bool>& healthy,
                              const TeamMembers& teams);

/// The ranks among `ranks` that have not made the request that `mine` is.
///   items  [ranks of the world] the contributions
[[nodiscard]] std::vector<int> missing_ranks(const std::vector<std::vector<Item>>& items, const Item& mine,
                                             const std::vector<int>& ranks);

}  // namespace beeline::gaspi
