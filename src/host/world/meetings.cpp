// SPDX-License-Identifier: Apache-2.0
#include "host/world/meetings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "beeline/device/impl/route.hpp"
#include "beeline/device/wait.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

Meetings::Call::Call(const Meetings& meetings, const char* call)
    : meetings_(meetings), outer_(detail::interrupt_waits_by(this)) {
  meetings_.show(call);
}

Meetings::Call::~Call() {
  detail::interrupt_waits_by(outer_);
  if (!has_failed_) meetings_.show(nullptr);
}

bool Meetings::Call::ends_wait(std::uint64_t now_ns) noexcept {
  if (outer_ != nullptr && outer_->ends_wait(now_ns)) return true;
  was_aborted_ = detail::load_acquired(meetings_.areas_.host_header()->control.abort[Teams::world_id]) != 0;
  return was_aborted_;
}

void Meetings::show(const char* call) const {
  CallName& shown = areas_.host_header()->meeting;
  char text[sizeof shown.words] = {};
  if (call != nullptr) std::string_view(call).copy(text, sizeof text - 1);
  constexpr std::size_t count = std::size(CallName{}.words);
  std::uint64_t words[count];
  std::memcpy(words, text, sizeof words);
  for (std::size_t i = 0; i < count; ++i)
    detail::SystemAtomic<std::uint64_t>(shown.words[i]).store(words[i], std::memory_order_relaxed);
}

std::string Meetings::call_of(int other) const {
  CallName shown{};
  const CallName& published = areas_.host_header(other)->meeting;
  if (membership_.is_local(other)) {
    for (std::size_t i = 0; i < std::size(shown.words); ++i) shown.words[i] = detail::load_acquired(published.words[i]);
  } else if (!read_remote_(other, &shown, &published, sizeof shown)) {
    return {};
  }
  char text[sizeof shown.words];
  std::memcpy(text, shown.words, sizeof text);
  text[sizeof text - 1] = 0;
  return text;
}

std::string Meetings::calls_in(std::uint32_t team, const std::vector<WaitRecord>& waits) const {
  std::set<int> asked;  // asking a rank on another node takes a message: only awaited ranks are asked
  constexpr std::size_t most_remote = 4;
  std::size_t remote = 0;
  for (const int member : teams_.members(team)) {
    const auto is_awaited = [member](const WaitRecord& wait) {
      return wait.peer == static_cast<std::uint32_t>(member);
    };
    if (member == membership_.rank()) continue;
    if (membership_.is_local(member) ||
        (std::any_of(waits.begin(), waits.end(), is_awaited) && ++remote <= most_remote))
      asked.insert(member);
  }
  std::map<std::string, std::vector<int>> calls;
  for (const int member : asked)
    if (const std::string call = call_of(member); !call.empty()) calls[call].push_back(member);
  std::string all;
  for (const auto& [call, ranks] : calls)
    all += fmt::format("\n  {} in {}", detail::rank_list(ranks) + (ranks.size() == 1 ? " is" : " are"), call);
  return all;
}

}  // namespace beeline
