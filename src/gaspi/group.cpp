// SPDX-License-Identifier: Apache-2.0
#include "gaspi/group.hpp"

#include <algorithm>

namespace beeline::gaspi {

std::shared_ptr<Group> GroupTable::create() {
  const std::lock_guard lock(mutex_);
  ++changes;
  for (std::uint32_t number = 0; number < most_groups; ++number)
    if (groups_[number] == nullptr) return groups_[number] = std::make_shared<Group>(number);
  return nullptr;
}

std::shared_ptr<Group> GroupTable::find(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  return number < most_groups ? groups_[number] : nullptr;
}

Group* GroupTable::find_and_keep(std::uint32_t number, std::uint64_t now) const {
  thread_local std::shared_ptr<Group> kept;
  kept = find(number);
  last = {now, number, kept.get()};
  return kept.get();
}

void GroupTable::remove(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  ++changes;
  if (number < most_groups) groups_[number] = nullptr;
}

std::uint32_t GroupTable::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(
      std::count_if(groups_.begin(), groups_.end(), [](const auto& group) { return group != nullptr; }));
}

}  // namespace beeline::gaspi
