// SPDX-License-Identifier: Apache-2.0
// Groups: creation, members, commit, deletion.
#include <fmt/format.h>

#include <algorithm>

#include "gaspi/checks.hpp"
#include "gaspi/service.hpp"

using namespace beeline::gaspi;

namespace {

std::shared_ptr<Group> group_of(Process& process, gaspi_group_t group) {
  std::shared_ptr<Group> found = process.groups().find(group);
  if (found == nullptr) refuse(GASPI_ERR_INV_GROUP, fmt::format("there is no group {}", group));
  return found;
}

/// Other members may still be in a call that this rank has begun, and wait in it for this rank.
void require_no_open_call(const Group& group) {
  if (beeline_team_failed(group.team) != 0) return;  // no call of the group ends any more
  if (group.is_in_barrier || group.is_in_reduction || group.has_open_barrier ||
      (group.work != nullptr && group.work->is_open()))
    refuse(GASPI_ERR_ACTIVE_COLL,
           fmt::format("a barrier or an all-reduce of group {} has timed out, and has to end first", group.number));
}

}  // namespace

extern "C" gaspi_return_t pgaspi_group_create(gaspi_group_t* group) {
  return call("gaspi_group_create", [&](Process& process) {
    require_pointer(group, "group");
    const std::uint32_t most = configuration().group_max + 1;
    const std::shared_ptr<Group> made = process.groups().count() < most ? process.groups().create() : nullptr;
    if (made == nullptr) refuse(GASPI_ERR_MANY_GRP, fmt::format("there are {} groups, the most there can be", most));
    *group = static_cast<gaspi_group_t>(made->number);
  });
}

extern "C" gaspi_return_t pgaspi_group_add(gaspi_group_t group, gaspi_rank_t rank) {
  return call("gaspi_group_add", [&](Process& process) {
    const std::shared_ptr<Group> to = group_of(process, group);
    require_rank(process, rank);
    if (to->state != Group::State::building)
      refuse(GASPI_ERR_INV_GROUP, fmt::format("group {} is committed, or its commit has begun", group));
    const auto place = std::lower_bound(to->ranks.begin(), to->ranks.end(), rank);
    if (place != to->ranks.end() && *place == rank)
      refuse(GASPI_ERR_INV_RANK, fmt::format("rank {} is in group {} already", rank, group));
    to->ranks.insert(place, rank);
  });
}

extern "C" gaspi_return_t pgaspi_group_commit(gaspi_group_t group, gaspi_timeout_t timeout_ms) {
  return call("gaspi_group_commit", [&](Process& process) {
    const std::shared_ptr<Group> made = group_of(process, group);
    if (made->state == Group::State::committed && made->commit_is_taken)
      refuse(GASPI_ERR_INV_GROUP, fmt::format("group {} is committed", group));
    if (!std::binary_search(made->ranks.begin(), made->ranks.end(), process.rank()))
      refuse(GASPI_ERR_INV_GROUP, fmt::format("group {} lacks the calling rank {}", group, process.rank()));
    // A round has committed it although the call that asked for it failed: a member was lost just then.
    if (made->state == Group::State::committed && !process.service().is_pending(Action::commit, made->number)) {
      made->commit_is_taken = true;
      return Result::success;
    }
    if (made->state == Group::State::building) made->state = Group::State::committing;
    try {
      const Result result = process.service().perform(
          {.action = Action::commit, .id = made->number, .ranks = made->ranks},
          {.what = "the other members' gaspi_group_commit of group", .number = made->number, .needed = made->ranks},
          timeout_ms);
      if (result == Result::success) made->commit_is_taken = true;
      return result;
    } catch (const Failure&) {
      Group::State committing = Group::State::committing;
      made->state.compare_exchange_strong(committing, Group::State::building);
      throw;
    }
  });
}

extern "C" gaspi_return_t pgaspi_group_delete(gaspi_group_t group) {
  return call("gaspi_group_delete", [&](Process& process) {
    const std::shared_ptr<Group> ended = group_of(process, group);
    if (ended->number == GASPI_GROUP_ALL) refuse(GASPI_ERR_INV_GROUP, "GASPI_GROUP_ALL is not deleted");
    if (ended->state == Group::State::committing)
      refuse(GASPI_ERR_INV_GROUP, fmt::format("the commit of group {} has timed out, and has to end first", group));
    if (ended->state == Group::State::committed) require_no_open_call(*ended);
    process.groups().remove(ended->number);
    if (ended->state == Group::State::committed)
      process.service().post({.action = Action::dissolve, .serial = ended->serial});
  });
}

extern "C" gaspi_return_t pgaspi_group_num(gaspi_number_t* group_num) {
  return answer_by("gaspi_group_num", group_num, "group_num",
                   [](Process& process) { return process.groups().count(); });
}

extern "C" gaspi_return_t pgaspi_group_size(gaspi_group_t group, gaspi_number_t* group_size) {
  return call("gaspi_group_size", [&](Process& process) {
    require_pointer(group_size, "group_size");
    *group_size = static_cast<gaspi_number_t>(group_of(process, group)->ranks.size());
  });
}

extern "C" gaspi_return_t pgaspi_group_ranks(gaspi_group_t group, gaspi_rank_t* group_ranks) {
  return call("gaspi_group_ranks", [&](Process& process) {
    require_pointer(group_ranks, "group_ranks");
    const std::shared_ptr<Group> of = group_of(process, group);
    std::transform(of->ranks.begin(), of->ranks.end(), group_ranks,
                   [](int rank) { return static_cast<gaspi_rank_t>(rank); });
  });
}

extern "C" gaspi_return_t pgaspi_group_max(gaspi_number_t* group_max) {
  return answer_by("gaspi_group_max", group_max, "group_max",
                   [](const Process&) { return configuration().group_max + 1; });
}

GASPI_EXPORT(group_create);
GASPI_EXPORT(group_add);
GASPI_EXPORT(group_commit);
GASPI_EXPORT(group_delete);
GASPI_EXPORT(group_num);
GASPI_EXPORT(group_size);
GASPI_EXPORT(group_ranks);
GASPI_EXPORT(group_max);
