// SPDX-License-Identifier: Apache-2.0
#include "host/world/wait_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/core/call_fault.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/device/wait.hpp"
#include "core/faulty_argument.hpp"
#include "host/collectives/describe_call.hpp"
#include "runtime/rank_list.hpp"

namespace beeline::detail {

bool has_status(const WaitRecord& record, Status status) { return record.status == static_cast<std::uint32_t>(status); }

bool is_cause(const WaitRecord& record) { return !has_status(record, Status::aborted); }

bool is_refusal(const WaitRecord& record) {
  return has_status(record, Status::unreachable) || has_status(record, Status::invalid_argument);
}

bool is_same_wait(const WaitRecord& a, const WaitRecord& b) {
  return a.rank == b.rank && a.operation == b.operation && a.peer == b.peer && a.team == b.team;
}

namespace {

bool is_collective(const WaitRecord& record) {
  return record.operation == static_cast<std::uint32_t>(Operation::collective);
}

std::string describe_lengths(std::uint32_t sender, std::uint64_t sent, std::uint32_t receiver, std::uint64_t expected) {
  return fmt::format("rank {} sends {} bytes to rank {}, which expects {} in alltoallv ({})", sender, sent, receiver,
                     expected, name(Status::invalid_argument));
}

/// Describes calls of members that differ, or a call whose root is no member: see DifferingCalls.
///   place  the caller, as ` in kernel NAME`
std::string describe_difference(const WaitRecord& record, const std::string& place) {
  const CallDescription mine = unpacked_call(record.expected, record.sequence);
  const CallDescription theirs = unpacked_call(record.observed, record.waited_ns);
  const char* const code = name(Status::invalid_argument);
  switch (static_cast<CallDifference>(record.comparison)) {
    case CallDifference::call: {
      const bool in_blocks = mine.slices != theirs.slices;
      return fmt::format("rank {} calls {}, rank {} calls {}: members make the same calls in the same order ({})",
                         record.rank, describe_call(mine, in_blocks), record.peer, describe_call(theirs, in_blocks),
                         code);
    }
    case CallDifference::order:
      if (record.expected == record.observed && record.sequence == record.waited_ns)
        return fmt::format(
            "rank {} and rank {} call {}, but an earlier call of one was another: members make the same calls in the "
            "same order ({})",
            record.rank, record.peer, describe_call(mine), code);
      return fmt::format(
          "rank {} calls {}, but has got data of another call of rank {}, {}: members make the same calls "
          "in the same order ({})",
          record.rank, describe_call(mine), record.peer, describe_call(theirs), code);
    case CallDifference::places:
      return fmt::format(
          "rank {} calls {}, which needs vectors at the same place of the symmetric heap on all ranks; they are not "
          "({})",
          record.rank, describe_call(mine), code);
    case CallDifference::sent_length:
      return describe_lengths(record.rank, record.expected, record.peer, record.observed);
    case CallDifference::expected_length:
      return describe_lengths(record.peer, record.observed, record.rank, record.expected);
    case CallDifference::root:
      return fmt::format("rank {}: {}{} refused: root {} is no rank of the team: these are 0 to {} ({})", record.rank,
                         name(static_cast<Operation>(record.sequence)), place, record.observed, record.expected - 1,
                         code);
    case CallDifference::session_in_use:
      break;
  }
  return fmt::format(
      "rank {} makes a call while another{} uses the channel: one after the other, or on channels of their own ({})",
      record.rank, mine.operation == Operation::none ? "" : fmt::format(", {},", describe_call(mine)), code);
}

/// Describes a message that differs from the message that its receiver expects.
std::string describe_message(const WaitRecord& record) {
  const auto message = [](std::uint64_t header) {
    const std::uint64_t slices = slices_in_header(header), tag = tag_in_header(header);
    const char* const type = type_in_header(header);
    return fmt::format("{} bytes{}{} in {} block{}{}", bytes_in_header(header), type == nullptr ? "" : " of ",
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

/// Whether a wait was ended by its team's abort although its value had arrived; such a record has no information.
bool is_satisfied(const WaitRecord& record) {
  return has_status(record, Status::aborted) &&
         holds(record.observed, static_cast<Compare>(record.comparison), record.expected);
}

/// Describes a wait that ended without success.
///   who    the waiting rank, as `rank 3`
///   place  the waiting kernel, as ` in kernel NAME`
///   word   the awaited word, as of Areas::describe_awaited
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

/// Describes a call that broke a rule, with its arguments.
///   reason  the reason of the peer's route if that refuses; else empty
std::string describe_refusal(const WaitRecord& record, const std::string& place, const std::string& reason) {
  const std::string peer =
      record.peer == no_peer || record.peer == record.rank ? "" : fmt::format(" on rank {}", record.peer);
  const auto operation = static_cast<Operation>(record.operation);
  const auto fault = static_cast<CallFault>(record.sequence);
  return fmt::format("rank {}: {}{}{} refused: {}{}{}{} ({})", record.rank, name(operation), peer, place,
                     faulty_argument(operation, fault), beeline::describe(fault, record.expected, record.observed),
                     reason.empty() ? "" : ": ", reason, name(static_cast<Status>(record.status)));
}

/// The place of a wait for errors: ` in kernel NAME`; empty for host code.
std::string place_of(const std::string& kernel) { return kernel.empty() ? "" : " in " + kernel; }

}  // namespace

std::string describe(const KnownWait& wait) {
  const WaitRecord& record = wait.record;
  const std::string place = place_of(wait.kernel);
  if (has_status(record, Status::invalid_argument) && is_collective(record)) return describe_difference(record, place);
  if (has_status(record, Status::invalid_argument) && record.peer != no_peer &&
      record.operation == static_cast<std::uint32_t>(Operation::receive))
    return describe_message(record);
  return is_refusal(record) ? describe_refusal(record, place, wait.reason)
                            : describe_wait(record, fmt::format("rank {}", record.rank), place, wait.word);
}

std::string describe_all(const std::vector<KnownWait>& waits, const std::string& known) {
  struct SameWaits {
    std::string text;  ///< without ranks and time
    KnownWait longest;
    std::vector<int> ranks;
  };
  std::vector<SameWaits> groups;
  for (const KnownWait& wait : waits) {
    const WaitRecord& record = wait.record;
    std::string text = describe(wait);
    if (text == known || is_satisfied(record)) continue;
    WaitRecord timeless = record;
    timeless.waited_ns = 0;
    if (!is_refusal(record)) text = describe_wait(timeless, "", place_of(wait.kernel), wait.word);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.text == text; });
    if (same == groups.end()) {
      groups.push_back({std::move(text), wait, {static_cast<int>(record.rank)}});
      continue;
    }
    same->ranks.push_back(static_cast<int>(record.rank));
    if (record.waited_ns > same->longest.record.waited_ns) same->longest = wait;
  }
  std::string all;
  for (const auto& [text, longest, ranks] : groups)
    all +=
        "\n  " + (ranks.size() == 1 ? describe(longest)
                                    : describe_wait(longest.record, rank_list(ranks) + ", the longest of these waits",
                                                    place_of(longest.kernel), longest.word));
  return all;
}

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

std::string describe_end(int rank, const std::string& reason) {
  const std::string who = fmt::format("rank {} ", rank);
  return reason.starts_with(who) ? reason : fmt::format("{}ended: {}", who, reason);
}

bool begins_with_rank(const std::string& text) {
  constexpr std::size_t number = 5;
  const std::size_t behind = text.find_first_not_of("0123456789", number);
  return text.starts_with("rank ") && behind != std::string::npos && behind > number &&
         text.compare(behind, 2, ": ") == 0;
}

bool repeats(const std::string& end, const std::string& cause) {
  const std::size_t first = cause.find(": "), last = cause.rfind(" (");
  return first < last && end.find(cause.substr(first + 2, last - first - 2)) != std::string::npos;
}

}  // namespace beeline::detail
