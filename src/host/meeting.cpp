// SPDX-License-Identifier: Apache-2.0
// Calls in which all ranks of a world meet: how long they wait, and what their errors say of ranks that are elsewhere.
#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <map>
#include <string_view>

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

std::string World::Implementation::meetings_in(std::uint32_t team) const {
  std::map<std::string, std::vector<int>> calls;
  {
    const std::lock_guard lock(team_mutex);
    const auto entry = teams.find(team);
    if (entry == teams.end()) return {};
    for (const int member : entry->second) {
      if (!is_near(member) || member == rank) continue;
      std::uint64_t words[std::size(CallName{}.words)];
      for (std::size_t i = 0; i < std::size(words); ++i)
        words[i] = detail::load_acquired(host_header(member)->meeting.words[i]);
      char text[sizeof words];
      std::memcpy(text, words, sizeof text);
      text[sizeof text - 1] = 0;
      if (text[0] != 0) calls[text].push_back(member);
    }
  }
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
