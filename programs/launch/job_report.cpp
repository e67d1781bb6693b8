// SPDX-License-Identifier: Apache-2.0
#include "job_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>

#include "remote.hpp"

namespace beeline::launcher {

namespace {

constexpr int ssh_failed = 255;  // ssh's exit code for an error of its own

/// The rank that a rank's error message names as its cause; -1 if none.
int cause_in(const std::deque<std::string>& lines) {
  constexpr std::string_view mark = ": because of rank ";
  for (const std::string& line : lines)
    if (const std::size_t at = line.find(mark); at != std::string::npos)
      return std::atoi(line.c_str() + at + mark.size());
  return -1;
}

/// Whether the lines hold `reason` without its first two parts: the rank that aborted, and the error's code.
bool holds(const std::deque<std::string>& lines, std::string reason) {
  for (int prefix = 0; prefix < 2; ++prefix)
    if (const std::size_t at = reason.find(": "); at != std::string::npos) reason.erase(0, at + 2);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(reason) != std::string::npos; });
}

}  // namespace

std::string JobReport::text_of(const RankProcess& process, bool with_reason) const {
  const Ending& ending = *process.ending();
  std::string who = process.rank() < 0 ? "the program" : fmt::format("rank {}", process.rank());
  if (!options_.hosts.empty()) who += " on " + options_.hosts[host_index(options_, process.rank())];
  std::string text = fmt::format("{} (pid {}) {}", who, process.pid(), ending.text());
  if (!options_.hosts.empty() && !ending.killed && ending.value == ssh_failed)
    text += ": ssh did not reach the host, or has lost it";
  if (const std::string reason = reason_of(process); !reason.empty()) return with_reason ? text + "; " + reason : text;
  if (!ending.success()) return text;
  const bool is_missed = server_ != nullptr && server_->is_missed(process.rank());
  return text + (is_missed ? " before it joined the world" : " without leaving the world");
}

/// The reason that a rank reported to the server, as `rank 3 aborted: ...`; empty if none.
std::string JobReport::reason_of(const RankProcess& process) const {
  const auto failure = server_ != nullptr ? server_->failure() : std::nullopt;
  const bool is_meant = failure && (failure->culprit == process.rank() || !options_.keep_going);
  return is_meant && failure->status == Status::aborted ? failure->reason : "";
}

void JobReport::find_cause(JobEnd& end) const {
  if (end.culprit < 0 || options_.threads) return;
  const int cause = cause_in(process_at(end.culprit).history().lines());
  if (cause < 0 || cause >= options_.ranks) return;
  const auto& ending = process_at(cause).ending();
  if (ending && !ending->success()) end.culprit = cause;
}

std::vector<std::string> JobReport::lines(const JobEnd& end) const {
  std::vector<std::string> lines;
  add_cause(end, lines);
  const auto say = [&](const std::vector<int>& ranks, const std::string& what, const char* how) {
    if (ranks.empty() || options_.threads) return;
    const bool is_one = ranks.size() == 1;
    lines.push_back(fmt::format("  {} {} {} and {} {}", is_one ? "rank" : "ranks", fmt::join(ranks, ", "), what,
                                is_one ? "was" : "were", how));
  };
  say(end.stopped, "had been stopped by a signal,", "killed");
  say(end.terminated, fmt::format("did not end within {:.3g} s", end.limit.count()), "terminated");
  return lines;
}

void JobReport::add_cause(const JobEnd& end, std::vector<std::string>& lines) const {
  if (end.culprit >= 0 && exit_code(end) != 0) {
    const RankProcess& culprit = process_at(end.culprit);
    const auto& last = culprit.history().lines();
    lines.push_back(fmt::format("beeline-launch: {}", text_of(culprit, !holds(last, reason_of(culprit)))));
    lines.emplace_back(last.empty() ? "  it had printed nothing" : "  its last lines:");
    for (const std::string& each : last) lines.push_back("    " + each);
  } else if (end.output_fault == EPIPE) {
    lines.emplace_back("beeline-launch: the job was ended because nobody reads its output");
  } else if (end.output_fault != 0) {
    lines.push_back(fmt::format("beeline-launch: the job was ended because its output cannot be written: {}",
                                std::strerror(end.output_fault)));
  } else if (end.interrupt != 0) {
    lines.push_back(fmt::format("beeline-launch: the job was ended by {}", signal_name(end.interrupt)));
  }
}

int JobReport::exit_code(const JobEnd& end) const {
  const auto has_gone_on = [&](const RankProcess& each) {
    return each.ending() && each.ending()->success() && !end.has_given_up(each.rank());  // given up: failed
  };
  const bool went_on =
      options_.keep_going && end.interrupt == 0 && std::any_of(processes_.begin(), processes_.end(), has_gone_on);
  if (went_on) return 0;
  if (end.culprit >= 0) {
    const int code = process_at(end.culprit).ending()->exit_code();
    return code != 0 ? code : 1;
  }
  if (end.output_fault != 0 && end.output_fault != EPIPE) return 1;
  return end.interrupt != 0 ? 128 + end.interrupt : 0;
}

}  // namespace beeline::launcher
