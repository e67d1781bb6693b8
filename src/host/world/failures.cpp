// SPDX-License-Identifier: Apache-2.0
// Errors of waits: which wait of which rank failed first, and for what other ranks waited.
#include "host/world/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "beeline/core/call_fault.hpp"
#include "beeline/device/wait.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

using detail::has_status;
using detail::is_cause;

namespace {

/// Time for waits of other ranks to notice an abort and to be recorded.
constexpr std::uint64_t gathering_ns = 50'000'000;

std::uint64_t load_word(const std::uint64_t& word) {
  return detail::SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

void collect(const WaitTable& table, std::vector<WaitRecord>& found) {
  for (const WaitRecord& record : table.records)
    if (detail::SystemAtomic<std::uint32_t>(const_cast<std::uint32_t&>(record.status))
            .load(std::memory_order_acquire) != 0)
      found.push_back(record);
}

/// Deletes the records of the teams `ids`; returns whether the table is then empty.
bool forget(WaitTable& table, TeamSet ids) {
  bool empty = true;
  for (WaitRecord& record : table.records) {
    const detail::SystemAtomic<std::uint32_t> status(record.status);
    if (status.load(std::memory_order_acquire) == 0) continue;
    if ((ids & team_set(record.team)) != 0)
      status.store(0, std::memory_order_relaxed);
    else
      empty = false;
  }
  return empty;
}

}  // namespace

Failures::Failures(const Membership& membership, const Areas& areas, Teams& teams, const Meetings& meetings,
                   const OwnProcess& process, FailureActions actions)
    : membership_(membership), areas_(areas), teams_(teams), meetings_(meetings), process_(process),
      actions_(std::move(actions)) {}

int Failures::failed_team(TeamSet watched) const {
  const ControlBlock& mine = areas_.host_header()->control;
  for (TeamSet rest = watched; rest != 0; rest &= rest - 1)
    if (const int id = std::countr_zero(rest); load_word(mine.abort[id]) != 0) return id;
  return -1;
}

bool Failures::failed_soon() const {
  const std::uint64_t end = machine::clock_ns() + gathering_ns;
  for (std::uint32_t poll = 0; !failed() && machine::clock_ns() < end; ++poll) machine::back_off(poll, 0);
  return failed();
}

std::vector<WaitRecord> Failures::waits() const {
  std::vector<WaitRecord> found;
  for (const int other : membership_.local_ranks()) {
    collect(areas_.host_header(other)->control.device_waits, found);
    collect(areas_.host_header(other)->control.host_waits, found);
  }
  std::stable_partition(found.begin(), found.end(), is_cause);
  std::vector<WaitRecord> distinct;  // waits that fail at the same moment do not see each other's records
  for (const WaitRecord& record : found)
    if (std::none_of(distinct.begin(), distinct.end(),
                     [&](const WaitRecord& other) { return detail::is_same_wait(record, other); }))
      distinct.push_back(record);
  return distinct;
}

std::vector<WaitRecord> Failures::waits_of(std::uint32_t team) const {
  std::vector<WaitRecord> found = waits();
  const std::vector<int> members = teams_.members(team);
  std::erase_if(found, [&](const WaitRecord& record) {
    // A rank that has ended may have left records of an earlier team with this id.
    return record.team != team || (!members.empty() && !Teams::concerns(static_cast<int>(record.rank), members));
  });
  return found;
}

std::vector<WaitRecord> Failures::gather_waits(std::uint32_t team) const {
  const std::uint64_t end = machine::clock_ns() + gathering_ns;
  for (std::uint32_t poll = 0; machine::clock_ns() < end; ++poll) machine::back_off(poll, 0);
  return waits_of(team);
}

std::vector<Failures::RankEnd> Failures::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

Failures::End Failures::end_of(std::uint32_t team) const {
  const std::vector<int> members = teams_.members(team);
  for (const RankEnd& end : ends()) {
    if (end.rank < 0) return {Status::aborted, fmt::format("the world ended: {}", end.reason)};
    if (Teams::concerns(end.rank, members)) return {Status::peer_died, detail::describe_end(end.rank, end.reason)};
  }
  return {};
}

Failures::End Failures::cause_of_abort(std::uint32_t team) const {
  for (const int member : teams_.members(team)) {
    if (!membership_.is_local(member)) continue;
    if (const AbortCause& cause = areas_.host_header(member)->abort_cause; load_word(cause.complete) != 0)
      return {cause.status, cause.text};
  }
  return {};
}

std::string Failures::cause_for_others(std::uint32_t team) const {
  const std::vector<WaitRecord> failed = waits_of(team);
  if (!failed.empty() && is_cause(failed.front())) return describe(failed.front());
  const End end = end_of(team);
  return end.text.empty() ? cause_of_abort(team).text : end.text;
}

std::string Failures::refusals_in(std::uint32_t team) const {
  std::string all;
  for (const int member : teams_.members(team)) {
    if (!membership_.is_local(member)) continue;
    if (const RefusedCommand& refused = areas_.host_header(member)->refused_command; load_word(refused.complete) != 0)
      all += std::string("\n  ") + refused.text;
  }
  return all;
}

void Failures::raise(std::uint32_t team, int culprit) const {
  detail::SystemAtomic<std::uint64_t>(areas_.host_header()->control.abort[team])
      .store(abort_word(static_cast<std::uint32_t>(culprit < 0 ? membership_.rank() : culprit)),
             std::memory_order_release);
}

void Failures::note_end(int culprit, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    ends_.push_back({culprit, reason.empty() ? "no reason given" : reason});
  }
  teams_.end_those_of(culprit, [&](std::uint32_t id) { raise(id, culprit); });
  notify_kernels();
}

void Failures::raise_missed_ends(std::uint32_t team) {
  const std::vector<int> members = teams_.members(team);
  bool any = false;
  for (const RankEnd& end : ends()) {
    if (!Teams::concerns(end.rank, members)) continue;
    raise(team, end.rank);
    any = true;
  }
  if (any) notify_kernels();
}

void Failures::keep_cause(Status status, const std::string& text) const {
  AbortCause& cause = areas_.host_header()->abort_cause;
  if (load_word(cause.complete) != 0) return;
  cause.status = status;
  text.copy(cause.text, sizeof cause.text - 1);  // the array ends with a zero already
  detail::SystemAtomic<std::uint64_t>(cause.complete).store(1, std::memory_order_release);
  machine::fence_system();
}

void Failures::raise_with_cause(Status status, const std::string& text, const Context& among) const {
  keep_cause(status, text);
  detail::raise_abort(among, static_cast<std::uint32_t>(membership_.rank()));
}

void Failures::take_remote_abort(std::uint32_t team, std::uint64_t word, const std::string& cause) const {
  if (!teams_.holds(team)) return;
  if (!cause.empty()) keep_cause(Status::aborted, cause);
  raise(team, static_cast<int>(word) - 1);
  notify_kernels();
}

void Failures::note_refusal(const std::string& text) const {
  RefusedCommand& refused = areas_.host_header()->refused_command;
  std::uint64_t unclaimed = 0;
  const detail::SystemAtomic<std::uint64_t> claim(refused.is_claimed);
  if (!claim.compare_exchange_strong(unclaimed, 1, std::memory_order_relaxed)) return;
  text.copy(refused.text, sizeof refused.text - 1);  // the array ends with a zero already
  detail::SystemAtomic<std::uint64_t>(refused.complete).store(1, std::memory_order_release);
}

detail::KnownWait Failures::known(const WaitRecord& record) const {
  const auto fault = static_cast<CallFault>(record.sequence);
  // In other records `sequence` may be any number, for example a message's.
  const bool is_of_route = has_status(record, Status::unreachable) && record.observed < max_ranks &&
                           (fault == CallFault::no_route || fault == CallFault::by_engine_only);
  const HostAreaHeader& theirs = *areas_.host_header(static_cast<int>(record.rank));
  return {record, record.kernel == 0 ? "" : theirs.kernel_names[record.kernel - 1u],
          is_of_route ? theirs.route_reasons[record.observed] : "", areas_.describe_awaited(record)};
}

std::string Failures::describe_all(const std::vector<WaitRecord>& waits, const std::string& known_text) const {
  std::vector<detail::KnownWait> all;
  for (const WaitRecord& record : waits) all.push_back(known(record));
  return detail::describe_all(all, known_text);
}

void Failures::check(TeamSet watched) const {
  if (const int id = failed_team(watched); id >= 0) fail(Status::aborted, static_cast<std::uint32_t>(id));
}

void Failures::fail(Status status, std::uint32_t team, const std::string& also) const {
  process_.require();
  const int rank = membership_.rank();
  // Read the calls first: the awaited ranks notice the abort, and may end soon.
  const std::string calls = status == Status::deadline ? meetings_.calls_in(team, waits_of(team)) : "";
  const std::vector<WaitRecord> failed = gather_waits(team);
  actions_.end_sources(
      membership_.remote_among(teams_.members(team)));  // the caller catches the error, and frees the memory
  // A wait that reached its deadline is the cause; a rank that ended then did so because of it.
  const bool has_cause = !failed.empty() && is_cause(failed.front());
  End end = end_of(team);
  if (end.text.empty()) end = cause_of_abort(team);
  if (has_cause && failed.front().rank == static_cast<std::uint32_t>(rank))
    status = static_cast<Status>(failed.front().status);
  if (!has_cause && !end.text.empty()) status = end.status;
  std::string message = end.text;
  if (has_cause || (message.empty() && !failed.empty())) message = describe(failed.front());
  const std::uint64_t word = load_word(areas_.host_header()->control.abort[team]);
  if (message.empty())
    message = word == 0 ? "the team was aborted; no rank has recorded a wait"
                        : fmt::format("rank {} aborted the {}", word - 1, team == 0 ? "world" : "team");
  const bool is_repeated = end.text.empty() || detail::repeats(end.text, message);
  std::string others = has_cause && !is_repeated ? "\n  " + end.text : "";
  others += describe_all(failed, message) + refusals_in(team);
  const bool is_late = has_cause && has_status(failed.front(), Status::deadline);
  if (is_late) others += calls;
  // The error names its rank already.
  if (const std::string own = fmt::format("rank {}: ", rank); message.starts_with(own)) message.erase(0, own.size());
  if (detail::begins_with_rank(message))
    message.insert(0, "because of ");
  else if (has_cause && failed.front().rank != static_cast<std::uint32_t>(rank))
    message.insert(0, fmt::format("because of rank {}: ", failed.front().rank));
  // The error begins with its status.
  if (const std::string code = fmt::format(" ({})", name(status)); message.ends_with(code))
    message.erase(message.size() - code.size());
  if (is_late) {
    const std::uint32_t awaited = detail::awaited_in_the_end(failed);
    if (awaited != no_peer && awaited != failed.front().peer)
      message += fmt::format(", which waits for rank {}", awaited);
  }
  if (!also.empty()) message += "; " + also;
  throw Error(status, others.empty() ? message : fmt::format("{}\n  at that time:{}", message, others), rank);
}

void Failures::fail_meeting(const char* call, const Error& missing, const Context& world) const {
  const int rank = membership_.rank();
  std::string message = detail::without_rank(missing.what(), rank);
  if (const std::string prefix = fmt::format("{}: ", name(missing.code())); message.starts_with(prefix))
    message.erase(0, prefix.size());
  const bool is_late = missing.code() == Status::deadline;
  // Another rank's wait may have begun with this call and be the cause of its failure; then the error reports that
  // wait.
  if (is_late && failed_soon()) fail(Status::aborted, 0, fmt::format("this rank was in {}", call));
  if (is_late) {
    raise_with_cause(Status::aborted, fmt::format("rank {}: {}: {}", rank, call, message), world);
    notify_kernels();
  }
  std::string others = describe_all(is_late ? gather_waits(0) : waits_of(0), {});
  if (!others.empty())
    others = (is_late ? "; all ranks make the same calls in the same order\n  at that time others were in:"
                      : "\n  waits that had failed:") +
             others;
  throw Error(missing.code(), fmt::format("{}: {}{}", call, message, others), rank);
}

void Failures::clear(std::uint32_t id) const {
  HostAreaHeader& header = *areas_.host_header();
  HeapHeader& heap = *areas_.heap_header();
  detail::SystemAtomic<std::uint64_t>(header.control.abort[id]).store(0, std::memory_order_relaxed);
  actions_.zero(&heap.abort[id], sizeof heap.abort[id]);
  actions_.zero(&heap.teams[id], sizeof(TeamSync));
  std::memset(&header.teams[id], 0, sizeof(TeamSync));
  std::memset(&header.kernel_teams[id], 0, sizeof(TeamSync));
  std::memset(&header.scalars[id], 0, sizeof header.scalars[id]);
  if (id == Teams::world_id) {
    meetings_.show(nullptr);
    std::memset(&header.abort_cause, 0, sizeof(AbortCause));
    std::memset(&header.refused_command, 0, sizeof(RefusedCommand));
  }
  forget_waits(team_set(id));
}

void Failures::forget_waits(TeamSet ids) const {
  HostAreaHeader& header = *areas_.host_header();
  if (forget(header.control.host_waits, ids))
    detail::DeviceAtomic<std::uint32_t>(header.wait_claims).store(0, std::memory_order_relaxed);
  if (membership_.device().is_gpu() && forget(header.control.device_waits, ids))
    actions_.zero(&areas_.heap_header()->wait_claims, sizeof(HeapHeader::wait_claims));
}

}  // namespace beeline
