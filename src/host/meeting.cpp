// SPDX-License-Identifier: Apache-2.0
// Calls in which all ranks of a world meet: how long they wait, and what their errors say of ranks that are elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "beeline/device/put_get.hpp"
#include "beeline/device/wait.hpp"
#include "host/world_implementation.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

World::Implementation::Meeting::Meeting(Implementation& world, const char* call)
    : world_(world), outer_(detail::interrupt_waits_by(this)) {
  world_.show_meeting(call);
}

World::Implementation::Meeting::~Meeting() {
  detail::interrupt_waits_by(outer_);
  if (!has_failed_) world_.show_meeting(nullptr);
}

bool World::Implementation::Meeting::ends_wait(std::uint64_t now_ns) noexcept {
  if (outer_ != nullptr && outer_->ends_wait(now_ns)) return true;
  was_aborted_ = world_.failed();
  return was_aborted_;
}

void World::Implementation::show_meeting(const char* call) {
  CallName& shown = host_header(rank)->meeting;
  char text[sizeof shown.words] = {};
  if (call != nullptr) std::string_view(call).copy(text, sizeof text - 1);
  constexpr std::size_t count = std::size(CallName{}.words);
  std::uint64_t words[count];
  std::memcpy(words, text, sizeof words);
  for (std::size_t i = 0; i < count; ++i)
    detail::SystemAtomic<std::uint64_t>(shown.words[i]).store(words[i], std::memory_order_relaxed);
}

std::string World::Implementation::meeting_of(int other) {
  CallName shown{};
  if (is_near(other)) {
    for (std::size_t i = 0; i < std::size(shown.words); ++i)
      shown.words[i] = detail::load_acquired(host_header(other)->meeting.words[i]);
  } else {
    constexpr std::uint64_t longest_ns = 1'000'000'000;
    WaitTable unused{};  // this wait is none of the program's
    std::uint32_t claims = 0;
    Context asking = host_context;
    asking.deadline_ns = std::min(asking.deadline_ns, longest_ns);
    asking.waits = unused.records, asking.wait_claims = &claims;
    std::vector<std::byte> bytes(sizeof shown);
    const detail::Request request = detail::move_request(false, static_cast<std::uint32_t>(other));
    const Status status = detail::move_by_engine(Thread{}, asking, request, QueueId{}, &host_header(other)->meeting,
                                                 {bytes.data(), 1, bytes.size(), 0, 0});
    if (status == Status::deadline) {
      const std::lock_guard lock(failure_mutex);
      abandoned.push_back(std::move(bytes));  // the engine may write it yet
      return {};
    }
    std::memcpy(&shown, bytes.data(), sizeof shown);  // zeros, unless they have come
  }
  char text[sizeof shown.words];
  std::memcpy(text, shown.words, sizeof text);
  text[sizeof text - 1] = 0;
  return text;
}

std::string World::Implementation::meetings_in(std::uint32_t team, const std::vector<WaitRecord>& waits) {
  std::set<int> asked;  // each takes a message if it is on another node: only those that are waited for are asked
  {
    const std::lock_guard lock(team_mutex);
    const auto entry = teams.find(team);
    if (entry == teams.end()) return {};
    constexpr std::size_t most_far = 4;
    std::size_t far = 0;
    for (const int member : entry->second) {
      const auto is_awaited = [member](const WaitRecord& wait) {
        return wait.peer == static_cast<std::uint32_t>(member);
      };
      if (member == rank) continue;
      if (is_near(member) || (std::any_of(waits.begin(), waits.end(), is_awaited) && ++far <= most_far))
        asked.insert(member);
    }
  }
  std::map<std::string, std::vector<int>> calls;
  for (const int member : asked)
    if (const std::string call = meeting_of(member); !call.empty()) calls[call].push_back(member);
  std::string all;
  for (const auto& [call, ranks] : calls)
    all += fmt::format("\n  {} in {}", detail::rank_list(ranks) + (ranks.size() == 1 ? " is" : " are"), call);
  return all;
}

bool World::Implementation::failed_soon() const {
  const std::uint64_t end = machine::clock_ns() + gathering_ns;
  for (std::uint32_t poll = 0; !failed() && machine::clock_ns() < end; ++poll) machine::back_off(poll, 0);
  return failed();
}

void World::Implementation::fail_meeting(const char* call, const Error& missing) {
  std::string message = detail::without_rank(missing.what(), rank);
  if (const std::string prefix = fmt::format("{}: ", name(missing.code())); message.starts_with(prefix))
    message.erase(0, prefix.size());
  const bool is_late = missing.code() == Status::deadline;
  // Another rank's wait may have begun with this call, and is its cause: then that wait is the one to report.
  if (is_late && failed_soon()) fail(Status::aborted, 0, fmt::format("this rank was in {}", call));
  if (is_late) {
    raise_with_cause(Status::aborted, fmt::format("rank {}: {}: {}", rank, call, message), barrier_context);
    tell_kernels();
  }
  std::string others = describe_all(is_late ? gather_waits(0) : failed_waits_of(0));
  if (!others.empty())
    others = (is_late ? "; all ranks make the same calls in the same order\n  at that time others were in:"
                      : "\n  waits that had failed:") +
             others;
  throw Error(missing.code(), fmt::format("{}: {}{}", call, message, others), rank);
}

}  // namespace beeline
