// SPDX-License-Identifier: Apache-2.0
// Errors of waits: which wait of which rank failed first, and what the others waited for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/core/call_fault.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/device/wait.hpp"
#include "control/host_engine.hpp"
#include "core/faulty_argument.hpp"
#include "host/collectives/describe_call.hpp"
#include "host/ranges.hpp"
#include "host/world_implementation.hpp"
#include "runtime/gpu_fault.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

namespace {

constexpr std::int64_t nap_ns = 10'000'000;  // from one look at the abort words to the next while a stream works

bool has_status(const WaitRecord& record, Status status) { return record.status == static_cast<std::uint32_t>(status); }

/// Whether a record tells why its team was aborted, and not only that it was.
bool is_cause(const WaitRecord& record) { return !has_status(record, Status::aborted); }

bool is_collective(const WaitRecord& record) {
  return record.operation == static_cast<std::uint32_t>(Operation::collective);
}

std::string describe_lengths(std::uint32_t sender, std::uint64_t sent, std::uint32_t receiver, std::uint64_t expected) {
  return fmt::format("rank {} sends {} bytes to rank {}, which expects {} in alltoallv ({})", sender, sent, receiver,
                     expected, name(Status::invalid_argument));
}

/// Members whose calls do not fit together, or one whose root is no member: see DifferingCalls.
///   place  what made the call, as ` in kernel NAME`
std::string describe_difference(const WaitRecord& record, const std::string& place) {
  const CallDescription mine = unpacked_call(record.expected, record.sequence);
  const CallDescription theirs = unpacked_call(record.observed, record.waited_ns);
  const char* const code = name(Status::invalid_argument);
  switch (static_cast<detail::CallDifference>(record.comparison)) {
    case detail::CallDifference::call: {
      const bool in_blocks = mine.slices != theirs.slices;
      return fmt::format("rank {} calls {}, rank {} calls {}: members make the same calls in the same order ({})",
                         record.rank, describe_call(mine, in_blocks), record.peer, describe_call(theirs, in_blocks),
                         code);
    }
    case detail::CallDifference::order:
      if (record.expected == record.observed && record.sequence == record.waited_ns)
        return fmt::format(
            "rank {} and rank {} call {}, but an earlier call of one was another: members make the same calls in the "
            "same order ({})",
            record.rank, record.peer, describe_call(mine), code);
      return fmt::format(
          "rank {} calls {}, but has got data of another call of rank {}, {}: members make the same calls "
          "in the same order ({})",
          record.rank, describe_call(mine), record.peer, describe_call(theirs), code);
    case detail::CallDifference::places:
      return fmt::format(
          "rank {} calls {}, which needs vectors at the same place of the symmetric heap on all ranks; they are not "
          "({})",
          record.rank, describe_call(mine), code);
    case detail::CallDifference::sent_length:
      return describe_lengths(record.rank, record.expected, record.peer, record.observed);
    case detail::CallDifference::expected_length:
      return describe_lengths(record.peer, record.observed, record.rank, record.expected);
    case detail::CallDifference::root:
      return fmt::format("rank {}: {}{} refused: root {} is no rank of the team: these are 0 to {} ({})", record.rank,
                         name(static_cast<Operation>(record.sequence)), place, record.observed, record.expected - 1,
                         code);
    case detail::CallDifference::session_in_use:
      break;
  }
  return fmt::format(
      "rank {} makes a call while another{} uses the channel: one after the other, or on channels of their own ({})",
      record.rank, mine.operation == Operation::none ? "" : fmt::format(", {},", describe_call(mine)), code);
}

/// A message that is not the one that its receiver expects.
std::string describe_message(const WaitRecord& record) {
  const auto message = [](std::uint64_t header) {
    const std::uint64_t slices = detail::slices_in_header(header), tag = detail::tag_in_header(header);
    const char* const type = detail::type_in_header(header);
    return fmt::format("{} bytes{}{} in {} block{}{}", detail::bytes_in_header(header), type == nullptr ? "" : " of ",
                       type == nullptr ? "" : type, slices, slices == 1 ? "" : "s",
                       tag == 0 ? "" : fmt::format(" with tag {}", tag));
  };
  return fmt::format("rank {} receives {}, rank {} sends {}, as message {}: both are to say the same ({})", record.rank,
                     message(record.expected), record.peer, message(record.observed), record.sequence,
                     name(Status::invalid_argument));
}

const char* symbol(std::uint8_t comparison) {
  constexpr std::array symbols = {"==", "!=", ">", ">=", "<", "<="};
  return comparison < symbols.size() ? symbols[comparison] : "?";
}

/// Whether a wait was ended by its team's abort although its value had come: it says nothing.
bool is_satisfied(const WaitRecord& record) {
  return has_status(record, Status::aborted) &&
         detail::holds(record.observed, static_cast<Compare>(record.comparison), record.expected);
}

/// A wait that ended without success.
///   who    waited, as `rank 3`
///   place  what waited, as ` in kernel NAME`
///   word   where the awaited one lies, as of awaited_place
std::string describe_wait(const WaitRecord& record, const std::string& who, const std::string& place,
                          const std::string& word) {
  const std::string peer = record.peer == record.rank ? ""
                           : record.peer == no_peer   ? " on any rank"
                                                      : fmt::format(" on rank {}", record.peer);
  const bool may_lack_room = record.kernel != 0 && !record.resident;
  const auto operation = static_cast<Operation>(record.operation);
  const double seconds = static_cast<double>(record.waited_ns) / 1e9;
  const char* const status = name(static_cast<Status>(record.status));
  if (operation == Operation::stream_synchronize)
    return fmt::format("{}: {}: work on a stream has not ended after {:.3f} s ({}){}", who, name(operation), seconds,
                       status, place.empty() ? "" : "; launched last:" + place.substr(place.find(' ', 1)));
  const std::string number = operation == Operation::wait       ? ""
                             : operation == Operation::wait_any ? fmt::format(", {} signals", record.sequence)
                                                                : fmt::format(", sequence {}", record.sequence);
  return fmt::format("{}: {}{}{}{}: expected {} {}, observed {}{}, after {:.3f} s ({}){}", who, name(operation), peer,
                     place, number, symbol(record.comparison), record.expected, record.observed, word, seconds, status,
                     may_lack_room
                         ? "; the kernel was launched without .waits = true: one that waits needs it, so that "
                           "all its blocks are resident"
                         : "");
}

/// A call that broke a rule, by what it was given.
///   reason  of the peer's route, where it is that which refuses; else empty
std::string describe_refusal(const WaitRecord& record, const std::string& place, const std::string& reason) {
  const std::string peer =
      record.peer == no_peer || record.peer == record.rank ? "" : fmt::format(" on rank {}", record.peer);
  const auto operation = static_cast<Operation>(record.operation);
  const auto fault = static_cast<CallFault>(record.sequence);
  return fmt::format("rank {}: {}{}{} refused: {}{}{}{} ({})", record.rank, name(operation), peer, place,
                     detail::faulty_argument(operation, fault),
                     beeline::describe(fault, record.expected, record.observed), reason.empty() ? "" : ": ", reason,
                     name(static_cast<Status>(record.status)));
}

bool is_refusal(const WaitRecord& record) {
  return has_status(record, Status::unreachable) || has_status(record, Status::invalid_argument);
}

/// What a record says.
///   kernel  what errors call the kernel that it is of; empty: host code, or unknown
///   reason  as of describe_refusal
///   word    as of describe_wait
std::string describe_record(const WaitRecord& record, const std::string& kernel, const std::string& reason,
                            const std::string& word) {
  const std::string place = kernel.empty() ? "" : fmt::format(" in {}", kernel);
  if (has_status(record, Status::invalid_argument) && is_collective(record)) return describe_difference(record, place);
  if (has_status(record, Status::invalid_argument) && record.peer != no_peer &&
      record.operation == static_cast<std::uint32_t>(Operation::receive))
    return describe_message(record);
  return is_refusal(record) ? describe_refusal(record, place, reason)
                            : describe_wait(record, fmt::format("rank {}", record.rank), place, word);
}

/// The rank that the first of these waits depends on in the end, through ranks that wait for each other; `no_peer`:
/// they wait in a circle.
std::uint32_t awaited_in_the_end(const std::vector<WaitRecord>& waits) {
  std::uint32_t rank = waits.front().peer;
  for (std::size_t step = 0; step <= waits.size() && rank != no_peer; ++step) {
    const auto next = std::find_if(waits.begin(), waits.end(), [&](const WaitRecord& record) {
      return record.rank == rank && record.peer != rank &&
             (has_status(record, Status::deadline) || has_status(record, Status::aborted));
    });
    if (next == waits.end()) return rank;
    rank = next->peer;
  }
  return no_peer;
}

void collect(const WaitTable& table, std::vector<WaitRecord>& found) {
  for (const WaitRecord& record : table.records)
    if (detail::SystemAtomic<std::uint32_t>(const_cast<std::uint32_t&>(record.status))
            .load(std::memory_order_acquire) != 0)
      found.push_back(record);
}

/// Whether two records are of the same rank that waited more than once for the same peer.
bool alike(const WaitRecord& a, const WaitRecord& b) {
  return a.rank == b.rank && a.operation == b.operation && a.peer == b.peer && a.team == b.team;
}

/// How a rank ended, by a reason that may name the rank already.
std::string describe_end(int rank, const std::string& reason) {
  const std::string who = fmt::format("rank {} ", rank);
  return reason.starts_with(who) ? reason : fmt::format("{}ended: {}", who, reason);
}

/// Whether a text is of one rank, as `rank 3: wait ...`.
bool begins_with_rank(const std::string& text) {
  constexpr std::size_t number = 5;
  const std::size_t behind = text.find_first_not_of("0123456789", number);
  return text.starts_with("rank ") && behind != std::string::npos && behind > number &&
         text.compare(behind, 2, ": ") == 0;
}

/// Whether one text holds what the other says of the same rank.
bool repeats(const std::string& end, const std::string& cause) {
  const std::size_t first = cause.find(": "), last = cause.rfind(" (");
  return first < last && end.find(cause.substr(first + 2, last - first - 2)) != std::string::npos;
}

/// Whether the end of `rank` (-1: the launcher) is the end of a team of `ranks`.
bool concerns(int rank, const std::vector<int>& ranks) {
  return rank < 0 || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::uint64_t load_word(const std::uint64_t& word) {
  return detail::SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

/// A thread that asks the driver for a stream again and again holds up others that call it, such as an engine's. So it
/// asks the less often the longer it has waited, by a small part of that, and beside an engine more seldom still.
void let_others_call_driver(std::uint64_t wait_start_ns) {
  const std::uint64_t now = machine::clock_ns(), most_ns = HostEngine::call_driver() ? 20'000 : 5'000;
  const std::uint64_t end = now + std::min((now - wait_start_ns) / 32, most_ns);
  while (machine::clock_ns() < end) machine::back_off(0, Polling(WaitPolicy::spin, 0));
}

}  // namespace

void World::Implementation::raise(std::uint32_t team, int culprit) {
  detail::SystemAtomic<std::uint64_t>(host_header(rank)->control.abort[team])
      .store(abort_word(static_cast<std::uint32_t>(culprit < 0 ? rank : culprit)), std::memory_order_release);
}

void World::Implementation::note_end(int culprit, const std::string& reason) {
  {
    const std::lock_guard lock(failure_mutex);
    ends.push_back({culprit, reason.empty() ? "no reason given" : reason});
  }
  {
    const std::lock_guard lock(team_mutex);
    for (const auto& [id, ranks] : teams) {
      if (!concerns(culprit, ranks)) continue;
      raise(id, culprit);
      if (culprit >= 0) retired_ids |= 1u << id | (id == 0 ? 1u << barrier_id : 0u);
    }
  }
  tell_kernels();
}

void World::Implementation::raise_missed_ends(std::uint32_t team) {
  std::vector<RankEnd> noted;
  {
    const std::lock_guard lock(failure_mutex);
    noted = ends;
  }
  bool any = false;
  {
    const std::lock_guard lock(team_mutex);
    for (const RankEnd& end : noted) {
      if (!concerns(end.rank, teams[team])) continue;
      raise(team, end.rank);
      any = true;
    }
  }
  if (any) tell_kernels();
}

void World::Implementation::tell_kernels() {
  if (!device().is_gpu() || copy_stream == nullptr) return;
  try {
    copy_stream->copy(heap_header(rank)->abort, host_header(rank)->control.abort, sizeof(HeapHeader::abort));
  } catch (const Error& error) {
    log(LogLevel::error, fmt::format("kernels could not be told of the abort: {}", error.what()), rank);
  }
}

std::vector<WaitRecord> World::Implementation::failed_waits() const {
  std::vector<WaitRecord> found;
  for (const int other : near_ranks()) {
    collect(host_header(other)->control.device_waits, found);
    collect(host_header(other)->control.host_waits, found);
  }
  std::stable_partition(found.begin(), found.end(), is_cause);
  std::vector<WaitRecord> distinct;  // waits that fail at the same moment do not see each other's records
  for (const WaitRecord& record : found)
    if (std::none_of(distinct.begin(), distinct.end(), [&](const WaitRecord& other) { return alike(record, other); }))
      distinct.push_back(record);
  return distinct;
}

std::vector<WaitRecord> World::Implementation::failed_waits_of(std::uint32_t team) const {
  std::vector<WaitRecord> found = failed_waits();
  const std::lock_guard lock(team_mutex);
  const auto entry = teams.find(team);
  std::erase_if(found, [&](const WaitRecord& record) {
    // A rank that is gone may have left records of an earlier team of this id.
    return record.team != team || (entry != teams.end() && !concerns(static_cast<int>(record.rank), entry->second));
  });
  return found;
}

int World::Implementation::failed_team(std::uint32_t watched) const {
  const ControlBlock& mine = host_header(rank)->control;
  for (std::uint32_t rest = watched; rest != 0; rest &= rest - 1)
    if (const int id = __builtin_ctz(rest); load_word(mine.abort[id]) != 0) return id;
  return -1;
}

void World::Implementation::check(std::uint32_t watched) {
  if (const int id = failed_team(watched); id >= 0) fail(Status::aborted, static_cast<std::uint32_t>(id));
}

World::Implementation::End World::Implementation::end_of_team(std::uint32_t team) {
  const std::scoped_lock lock(failure_mutex, team_mutex);
  const auto entry = teams.find(team);
  for (const RankEnd& end : ends) {
    if (end.rank < 0) return {Status::aborted, fmt::format("the world ended: {}", end.reason)};
    if (entry != teams.end() && concerns(end.rank, entry->second))
      return {Status::peer_died, describe_end(end.rank, end.reason)};
  }
  return {};
}

World::Implementation::End World::Implementation::cause_of_abort(std::uint32_t team) const {
  const std::lock_guard lock(team_mutex);
  const auto entry = teams.find(team);
  if (entry == teams.end()) return {};
  for (const int member : entry->second) {
    if (!is_near(member)) continue;
    if (const AbortCause& cause = host_header(member)->abort_cause; load_word(cause.complete) != 0)
      return {cause.status, cause.text};
  }
  return {};
}

void World::Implementation::check_refusals() {
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(queue_engine_mutex);
    if (queue_engine != nullptr) texts = queue_engine->refusals().take();
  }
  for (std::string& text : device_refusals.take()) texts.push_back(std::move(text));
  if (!texts.empty()) throw Error(Status::invalid_argument, fmt::format("{}", fmt::join(texts, "\n  ")), rank);
}

std::string World::Implementation::refusals_in(std::uint32_t team) const {
  std::string all;
  const std::lock_guard lock(team_mutex);
  const auto entry = teams.find(team);
  if (entry == teams.end()) return all;
  for (const int member : entry->second) {
    if (!is_near(member)) continue;
    if (const RefusedCommand& refused = host_header(member)->refused_command; load_word(refused.complete) != 0)
      all += std::string("\n  ") + refused.text;
  }
  return all;
}

void World::Implementation::keep_cause(Status status, const std::string& text) {
  AbortCause& cause = host_header(rank)->abort_cause;
  if (load_word(cause.complete) != 0) return;
  cause.status = status;
  text.copy(cause.text, sizeof cause.text - 1);  // its end is zero already
  detail::SystemAtomic<std::uint64_t>(cause.complete).store(1, std::memory_order_release);
  machine::fence_system();
}

void World::Implementation::raise_with_cause(Status status, const std::string& text, const Context& among) {
  keep_cause(status, text);
  detail::raise_abort(among, static_cast<std::uint32_t>(rank));
}

void Team::give_up(const std::string& reason) {
  World::Implementation& world = world_.implementation();
  world.require_own_process();
  world.raise_with_cause(Status::aborted, fmt::format("rank {}: {}", world.rank, reason),
                         world.barrier_context_of(*this));
  world.tell_kernels();
}

std::vector<WaitRecord> World::Implementation::gather_waits(std::uint32_t team) const {
  const std::uint64_t end = machine::clock_ns() + gathering_ns;
  for (std::uint32_t poll = 0; machine::clock_ns() < end; ++poll) machine::back_off(poll, 0);
  return failed_waits_of(team);
}

std::string World::Implementation::describe(const WaitRecord& record) const {
  const auto fault = static_cast<CallFault>(record.sequence);
  // Of other records the sequence may be any number, as that of a message.
  const bool is_of_route = has_status(record, Status::unreachable) && record.observed < max_ranks &&
                           (fault == CallFault::no_route || fault == CallFault::by_engine_only);
  const std::string reason =
      is_of_route ? host_header(static_cast<int>(record.rank))->route_reasons[record.observed] : "";
  return describe_record(record, kernel_name(record.rank, record.kernel), reason, detail::awaited_place(*this, record));
}

std::string World::Implementation::describe_all(const std::vector<WaitRecord>& waits, const std::string& known) const {
  struct SameWaits {
    std::string text;  ///< but for ranks and time
    WaitRecord longest;
    std::vector<int> ranks;
  };
  std::vector<SameWaits> groups;
  for (const WaitRecord& record : waits) {
    std::string text = describe(record);
    if (text == known || is_satisfied(record)) continue;
    WaitRecord timeless = record;
    timeless.waited_ns = 0;
    const std::string word = detail::awaited_place(*this, record);
    const std::string kernel = kernel_name(record.rank, record.kernel), place = kernel.empty() ? "" : " in " + kernel;
    if (!is_refusal(record)) text = describe_wait(timeless, "", place, word);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.text == text; });
    if (same == groups.end()) {
      groups.push_back({std::move(text), record, {static_cast<int>(record.rank)}});
      continue;
    }
    same->ranks.push_back(static_cast<int>(record.rank));
    if (record.waited_ns > same->longest.waited_ns) same->longest = record;
  }
  std::string all;
  for (const auto& [text, longest, ranks] : groups) {
    const std::string kernel = kernel_name(longest.rank, longest.kernel), place = kernel.empty() ? "" : " in " + kernel;
    all +=
        "\n  " + (ranks.size() == 1 ? describe(longest)
                                    : describe_wait(longest, detail::rank_list(ranks) + ", the longest of these waits",
                                                    place, detail::awaited_place(*this, longest)));
  }
  return all;
}

void World::Implementation::fail(Status status, std::uint32_t team, const std::string& also) {
  require_own_process();
  // Asked for first: the ranks that are waited for notice the abort, and may end soon.
  const std::string meetings = status == Status::deadline ? meetings_in(team, failed_waits_of(team)) : "";
  const std::vector<WaitRecord> waits = gather_waits(team);
  if (engine != nullptr) engine->end_sources(far_members(team));  // their owner catches the error, and frees them
  // A wait that reached its deadline is the cause; a rank that ended then did so because of it.
  const bool has_cause = !waits.empty() && is_cause(waits.front());
  End end_noticed = end_of_team(team);
  if (end_noticed.text.empty()) end_noticed = cause_of_abort(team);
  if (has_cause && waits.front().rank == static_cast<std::uint32_t>(rank))
    status = static_cast<Status>(waits.front().status);
  if (!has_cause && !end_noticed.text.empty()) status = end_noticed.status;
  std::string message = end_noticed.text;
  if (has_cause || (message.empty() && !waits.empty())) message = describe(waits.front());
  const std::uint64_t word = load_word(host_header(rank)->control.abort[team]);
  if (message.empty())
    message = word == 0 ? "the team was aborted; no rank has recorded a wait"
                        : fmt::format("rank {} aborted the {}", word - 1, team == 0 ? "world" : "team");
  const bool is_repeated = end_noticed.text.empty() || repeats(end_noticed.text, message);
  std::string others = has_cause && !is_repeated ? "\n  " + end_noticed.text : "";
  others += describe_all(waits, message) + refusals_in(team);
  if (has_cause && has_status(waits.front(), Status::deadline)) others += meetings;
  // The error says whose it is.
  if (const std::string own = fmt::format("rank {}: ", rank); message.starts_with(own)) message.erase(0, own.size());
  if (begins_with_rank(message))
    message.insert(0, "because of ");
  else if (has_cause && waits.front().rank != static_cast<std::uint32_t>(rank))
    message.insert(0, fmt::format("because of rank {}: ", waits.front().rank));
  // Its status comes first.
  if (const std::string end = fmt::format(" ({})", name(status)); message.ends_with(end))
    message.erase(message.size() - end.size());
  if (has_cause && has_status(waits.front(), Status::deadline)) {
    const std::uint32_t awaited = awaited_in_the_end(waits);
    if (awaited != no_peer && awaited != waits.front().peer)
      message += fmt::format(", which waits for rank {}", awaited);
  }
  if (!also.empty()) message += "; " + also;
  throw Error(status, others.empty() ? message : fmt::format("{}\n  at that time:{}", message, others), rank);
}

void World::Implementation::give_up_streams(std::uint32_t watched, std::uint64_t waited_ns, std::uint16_t kernel) {
  std::map<std::uint32_t, std::vector<int>> concerned;
  {
    const std::lock_guard lock(team_mutex);
    concerned = teams;
  }
  std::erase_if(concerned, [&](const auto& team) { return ((watched | (watched == 0)) >> team.first & 1u) == 0; });
  for (const auto& [id, ranks] : concerned) {
    Context own = make_context(id, ranks, true);
    own.kernel = kernel;
    const Awaited awaited{Operation::stream_synchronize, own.rank, 0, 1};
    static_cast<void>(detail::give_up(own, awaited, 0, waited_ns, Status::deadline));
  }
}

void World::Implementation::check_gpu() const {
  const std::string fault = device().is_gpu() ? detail::gpu_fault(device().index) : "";
  if (fault.empty()) return;
  std::vector<int> together;
  for (int other = 0; other < size; ++other)
    if (members[static_cast<std::size_t>(other)].process == members[static_cast<std::size_t>(rank)].process)
      together.push_back(other);
  std::string message = fmt::format("a fault of GPU {} ({}) ends every rank of its process: {}", device().index, fault,
                                    fmt::join(together, ", "));
  std::vector<int> beyond;  // a kernel that touches their memory has such a fault
  for (int other = 0; other < size; ++other)
    if (const auto peer = static_cast<std::size_t>(other);
        members[peer].device.is_gpu() && routes[peer].copies != CopyPath::direct)
      beyond.push_back(other);
  if (!beyond.empty())
    message += fmt::format(
        "; kernels of rank {} do not reach the memory of {} (no peer access between the GPUs): use "
        "copies, signals of streams, or StagedChannel",
        rank, detail::rank_list(beyond));
  for (const WaitRecord& record : failed_waits())  // a kernel that had to be stopped says why
    if (is_refusal(record)) message += "\n  " + describe(record);
  throw Error(Status::internal, message, rank);
}

Status World::Implementation::await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over,
                                    std::uint32_t watched, Stream* awaited, Timeout timeout) {
  require_own_process();
  try {
    return poll_until_over(what, deadline_ns, over, watched, awaited, timeout);
  } catch (const Error& error) {
    if (error.code() == Status::internal) check_gpu();
    throw;
  }
}

Status World::Implementation::poll_until_over(const char* what, std::int64_t deadline_ns,
                                              const std::function<bool()>& over, std::uint32_t watched, Stream* awaited,
                                              Timeout timeout) {
  const std::uint64_t start = machine::clock_ns();
  const auto nap = static_cast<std::int64_t>(std::min<std::uint64_t>(nap_ns, timeout.ns));
  const Polling polling = host_context.polling;
  // A host rank's stream signals its end anyway; a GPU's has to be asked to.
  const bool by_condition =
      awaited != nullptr && (polling.policy() == WaitPolicy::event ||
                             (polling.policy() == WaitPolicy::automatic && !awaited->device().is_gpu()));
  // To sleep and be woken takes longer than to give the core away some times.
  const std::uint32_t sleeps_from = polling.policy() == WaitPolicy::automatic ? 16 * polling.number() : 0;
  bool released = false;
  // The thread of a host rank's stream may need this core, which polling without giving it away would hold up.
  const bool yields_at_once =
      awaited != nullptr && polling.policy() == WaitPolicy::automatic && !awaited->device().is_gpu();
  for (std::uint32_t poll = yields_at_once ? polling.number() : 0; !over(); ++poll) {
    const bool gives_core_away = machine::backs_off(poll, polling);
    const bool slept = by_condition && poll >= sleeps_from && awaited->sleep_until_drained(nap);
    if (!slept) machine::back_off(poll, polling);
    if (!slept && awaited != nullptr && awaited->device().is_gpu()) let_others_call_driver(start);
    if (poll % detail::polls_per_look != 0 && !gives_core_away) continue;
    const std::uint64_t now = machine::clock_ns(), waited = now - start;
    const bool interrupted = !released && machine::is_interrupted(now, waited);
    const bool aborted = failed_team(watched) >= 0;
    if (waited < static_cast<std::uint64_t>(deadline_ns) && (!aborted || released)) {
      if ((waited >= timeout.ns && !released) || interrupted) return Status::timeout;
      continue;
    }
    if (over()) break;  // what came before the end counts, also while this process was stopped
    if (released)
      throw Error(Status::deadline, fmt::format("{} did not end, not even after it was aborted", what), rank);
    if (!aborted) give_up_streams(watched, waited, awaited == nullptr ? 0 : awaited->launched_teams().last_kernel());
    released = true;  // kernels are told, and leave; give them time to
    tell_kernels();
    if (failed()) stream->release_waits();
    if (awaited != nullptr) awaited->release_waits();
    deadline_ns = static_cast<std::int64_t>(waited) + 5'000'000'000;
  }
  return Status::ok;
}

}  // namespace beeline
