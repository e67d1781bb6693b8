// SPDX-License-Identifier: Apache-2.0
#include "gaspi/round.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace beeline::gaspi {

namespace {

/// The bytes of an item, before its ranks.
struct Head {
  std::uint8_t action, kind, has_flags_on_device, existing;
  std::uint32_t id;
  std::uint64_t bytes, key;
  std::uint32_t count, listed;  ///< `listed`: ranks that follow, as 16 bits each
};
static_assert(sizeof(Head) == 32);

std::uint64_t hash_of(const std::vector<int>& ranks) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const int rank : ranks) hash = (hash ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3u;  // FNV-1a
  return hash;
}

/// Requests of one group that may be the same call of its members. Members that commit several groups of the same
/// ranks do so in the same order.
struct Joint {
  Action action;
  std::uint64_t key;
  std::uint32_t count, id;  ///< `id`: of `create`, which names the same segment on all members
  auto operator<=>(const Joint&) const = default;
};
Joint joint_of(const Item& item) {
  return {item.action, item.key, item.count, item.action == Action::create ? item.id : 0};
}

class Planner {
 public:
  Planner(const std::vector<std::vector<Item>>& items, const std::vector<bool>& healthy, const TeamMembers& teams)
      : items_(items), healthy_(healthy), teams_(teams) {}

  Plan plan() {
    sort();
    if (!plan_.kills.empty()) {
      Plan kills;
      kills.kills = std::move(plan_.kills), kills.killed = std::move(plan_.killed);
      return kills;
    }
    for (const auto& [joint, requests] : joints_) join(joint, requests);
    for (const auto& [serial, members] : teams_) end_team(serial, members);
    for (const auto& [serial, asked] : dissolving_) plan_.ends.push_back({serial, asked});  // of teams lost by failures
    std::uint32_t staying = 0;
    for (std::size_t rank = 0; rank < healthy_.size(); ++rank)
      staying += healthy_[rank] && leaving_.count(static_cast<int>(rank)) == 0;
    plan_.leaves = staying == 0;
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const Item& item(ItemPlace place) const {
    return items_[static_cast<std::size_t>(place.rank)][place.index];
  }

  void sort() {
    for (std::size_t rank = 0; rank < items_.size(); ++rank)
      for (std::size_t index = 0; index < items_[rank].size(); ++index) take({static_cast<int>(rank), index});
  }

  void take(ItemPlace place) {
    const Item& mine = item(place);
    switch (mine.action) {
      case Action::allocate:
        return add_part(place, {});
      case Action::announce:
        return plan_.announcements.push_back({place, mine.id, mine.ranks});
      case Action::remove:
        return plan_.removals.push_back({place, mine.id});
      case Action::create:
      case Action::commit:
        return joints_[joint_of(mine)].push_back(place);
      case Action::dissolve:
        return dissolving_[mine.key].push_back(place);
      case Action::leave:
        leaving_.insert(place.rank);
        return;
      case Action::kill:
        plan_.kills.push_back(place);
        plan_.killed.push_back(static_cast<int>(mine.id));
        return;
    }
  }

  void add_part(ItemPlace place, const std::vector<int>& announced) {
    const Item& mine = item(place);
    const Plan::Part part{place,
                          mine.id,
                          mine.bytes,
                          mine.kind,
                          mine.has_flags_on_device,
                          mine.existing == 0 ? 0u : mine.existing - 1u,
                          announced};
    if (mine.existing != 0) return plan_.existing.push_back(part);
    for (std::vector<Plan::Part>& batch : plan_.made)
      if (std::none_of(batch.begin(), batch.end(), [&](const auto& other) { return other.of.rank == place.rank; }))
        return batch.push_back(part);
    plan_.made.push_back({part});
  }

  /// Adds the calls of a group that all its members have made.
  ///   requests  by rank, each rank's in the order of its calls
  void join(const Joint& joint, const std::vector<ItemPlace>& requests) {
    std::map<int, std::vector<ItemPlace>> by_rank;
    for (const ItemPlace& place : requests) by_rank[place.rank].push_back(place);
    const std::vector<int>& ranks = item(requests.front()).ranks;  // only the first member lists them
    if (ranks.size() != joint.count) return;
    for (std::size_t turn = 0;; ++turn) {
      std::vector<ItemPlace> calls;
      for (const int rank : ranks) {
        const auto found = by_rank.find(rank);
        if (found == by_rank.end() || found->second.size() <= turn) return;
        calls.push_back(found->second[turn]);
      }
      if (joint.action == Action::commit)
        add_team(ranks, std::move(calls));
      else
        for (const ItemPlace& place : calls) add_part(place, ranks);
    }
  }

  void add_team(const std::vector<int>& ranks, std::vector<ItemPlace> calls) {
    const auto meets = [&](const Plan::Team& other) {
      return std::any_of(ranks.begin(), ranks.end(),
                         [&](int rank) { return std::binary_search(other.ranks.begin(), other.ranks.end(), rank); });
    };
    for (std::vector<Plan::Team>& together : plan_.teams)
      if (std::none_of(together.begin(), together.end(), meets)) return together.push_back({ranks, std::move(calls)});
    plan_.teams.push_back({{ranks, std::move(calls)}});
  }

  void end_team(std::uint64_t serial, const std::vector<int>& members) {
    const auto found = dissolving_.find(serial);
    if (found == dissolving_.end()) return;
    const std::vector<ItemPlace> asked = std::move(found->second);
    dissolving_.erase(found);
    const auto has_asked = [&](int rank) {
      return std::any_of(asked.begin(), asked.end(), [=](const ItemPlace& place) { return place.rank == rank; });
    };
    if (std::all_of(members.begin(), members.end(),
                    [&](int rank) { return !healthy_[static_cast<std::size_t>(rank)] || has_asked(rank); }))
      plan_.ends.push_back({serial, asked});
  }

  const std::vector<std::vector<Item>>& items_;
  const std::vector<bool>& healthy_;
  const TeamMembers& teams_;
  Plan plan_;
  std::map<Joint, std::vector<ItemPlace>> joints_;
  std::map<std::uint64_t, std::vector<ItemPlace>> dissolving_;
  std::set<int> leaving_;
};

}  // namespace

bool is_of_group(Action action) { return action == Action::create || action == Action::commit; }

Item item_of(const Request& request, int rank) {
  Item item{.action = request.action,
            .kind = request.kind,
            .has_flags_on_device = request.has_flags_on_device,
            .id = request.id,
            .bytes = request.bytes};
  if (request.existing != nullptr)
    item.existing = static_cast<std::uint8_t>(1 + reinterpret_cast<std::uintptr_t>(request.existing) % 16);
  item.key = request.action == Action::dissolve ? request.serial : hash_of(request.ranks);
  item.count = static_cast<std::uint32_t>(request.ranks.size());
  if (!is_of_group(request.action) || (!request.ranks.empty() && request.ranks.front() == rank))
    item.ranks = request.ranks;
  return item;
}

std::vector<std::byte> encode(const std::vector<Item>& items) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  for (const Item& item : items) {
    add(Head{static_cast<std::uint8_t>(item.action), static_cast<std::uint8_t>(item.kind), item.has_flags_on_device,
             item.existing, item.id, item.bytes, item.key, item.count, static_cast<std::uint32_t>(item.ranks.size())});
    for (const int rank : item.ranks) add(static_cast<std::uint16_t>(rank));
  }
  return bytes;
}

std::vector<Item> decode(std::span<const std::byte> bytes) {
  std::vector<Item> items;
  const auto take = [&](auto& value) {
    if (bytes.size() < sizeof value) throw Failure("a rank's contribution to a round is cut off");
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
  };
  while (!bytes.empty()) {
    Head head;
    take(head);
    if (head.action >= actions || head.kind > static_cast<std::uint8_t>(Memory::device))
      throw Failure("a rank's contribution to a round has an unknown action");
    Item& item = items.emplace_back(Item{.action = static_cast<Action>(head.action),
                                         .kind = static_cast<Memory>(head.kind),
                                         .has_flags_on_device = head.has_flags_on_device != 0,
                                         .existing = head.existing,
                                         .id = head.id,
                                         .bytes = head.bytes,
                                         .key = head.key,
                                         .count = head.count});
    for (std::uint32_t i = 0; i < head.listed; ++i) {
      std::uint16_t rank;
      take(rank);
      item.ranks.push_back(rank);
    }
  }
  return items;
}

Plan plan_round(const std::vector<std::vector<Item>>& items, const std::vector<bool>& healthy,
                const TeamMembers& teams) {
  return Planner(items, healthy, teams).plan();
}

std::vector<int> missing_ranks(const std::vector<std::vector<Item>>& items, const Item& mine,
                               const std::vector<int>& ranks) {
  const auto makes_it = [wanted = joint_of(mine)](const Item& item) {
    return item.action == Action::leave ? wanted.action == Action::leave : joint_of(item) == wanted;
  };
  std::vector<int> missing;
  for (const int rank : ranks) {
    const std::vector<Item>& of = items[static_cast<std::size_t>(rank)];
    if (std::none_of(of.begin(), of.end(), makes_it)) missing.push_back(rank);
  }
  return missing;
}

}  // namespace beeline::gaspi
