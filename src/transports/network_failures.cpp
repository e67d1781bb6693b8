// SPDX-License-Identifier: Apache-2.0
#include "transports/network_failures.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "beeline/core/log.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

namespace {

/// Time from the loss of a connection to its report, in which the cause of the peer's end may be reported first.
constexpr std::uint64_t lost_ns = 1'000'000'000;
/// After an abort, the sources of data that a rank has not accepted for this long are copied, so that the caller gets
/// its error. If the transport cannot copy them, the rank is given up.
constexpr std::uint64_t stuck_ns = 1'000'000'000;
/// Time between two logs of a rank that completes its messages slowly.
constexpr std::uint64_t slow_ns = 100'000'000;

}  // namespace

bool NetworkFailures::report() {
  // `settle` holds the mutex while it waits for work that this thread does.
  const std::unique_lock reporting(report_mutex_, std::try_to_lock);
  if (!reporting) return false;
  bool any = send_aborts();
  const bool ends_lost = is_abort_seen();
  // Waiting threads take turns so quickly that this thread, if it waited for its turn here, would delay each of them.
  if (reported_aborts_[0] == 0 && !exchange_.peers.has_reports()) return any;
  std::string failure;
  std::vector<RemoteAbort> aborts;
  std::vector<std::pair<int, std::string>> lost;
  {
    const auto lock = turns_.lock();
    if (ends_lost) exchange_.end_lost();
    failure = exchange_.peers.take_failure();
    aborts = exchange_.peers.take_aborts();
    const std::uint64_t now = machine::clock_ns();
    lost = exchange_.peers.take_lost(now - std::min(now, lost_ns));
    exchange_.peers.end_reports();
  }
  for (const RemoteAbort& each : aborts) {
    reported_aborts_[each.team] = each.word;
    events_.aborted(each.team, each.word, each.cause);
  }
  for (const auto& [peer, reason] : lost) events_.lost(peer, reason);
  if (!failure.empty()) client_->fail(failure);
  return any || !aborts.empty() || !lost.empty() || !failure.empty();
}

bool NetworkFailures::is_abort_seen() {
  if (std::exchange(world_abort_.word, reported_aborts_[0]) != reported_aborts_[0])
    world_abort_.stage = WorldAbort::unseen;
  if (world_abort_.word != 0 && world_abort_.stage == WorldAbort::unseen && events_.kernels_see_abort())
    world_abort_.stage = WorldAbort::seen;
  return world_abort_.stage == WorldAbort::seen;
}

/// A rank that gives up stores an abort word; this function alone sends the word to other nodes.
bool NetworkFailures::send_aborts() {
  bool any = false;
  for (std::uint32_t team = 0; team < max_teams; ++team) {
    auto& word = client_->context.host_abort_words[team];
    const std::uint64_t raised = detail::SystemAtomic<std::uint64_t>(word).load(std::memory_order_acquire);
    if (std::exchange(reported_aborts_[team], raised) == raised || raised == 0) continue;
    any = true;
    const RemoteAbort abort{team, raised, events_.cause(team)};
    const std::vector<int> members = events_.members_to_notify(team);
    const auto lock = turns_.lock();
    for (const int member : members) exchange_.peers.send_abort(member, abort);
  }
  return any;
}

template <class IsOver>
void NetworkFailures::work_until(const std::vector<int>& peers, const Ending& ending, IsOver is_over) {
  std::vector<Waited> waited(peers.size());
  for (std::uint64_t said = machine::clock_ns();; ::sched_yield()) {
    const auto lock = turns_.lock();
    if (!exchange_.peers.plan().stages()) static_cast<void>(exchange_.turn());
    const std::uint64_t now = machine::clock_ns();
    const bool says = now - said >= slow_ns;
    if (says) said = now;
    bool is_all = true;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (!is_remote(peers[i]) || waited[i].has_ended || is_over(peers[i])) continue;
      is_all = false;
      const RemotePeer& to = peer_of(peers[i]);
      const std::uint64_t progress = to.acknowledged + to.sent + to.arrivals.done();
      if (waited[i].since_ns == 0 || progress != waited[i].progress) waited[i] = {progress, now};
      if (now - waited[i].since_ns >= ending.limit_ns) {
        waited[i].has_ended = true;
        const bool is_free = ending.may_copy && to.worker->copy_sources(peers[i]) && is_over(peers[i]);
        if (!is_free) give_up(peers[i], ending);
      } else if (says) {
        log(LogLevel::info,
            fmt::format("rank {} has not completed {} yet: {}", peers[i], ending.what, missing_from(peers[i])), rank());
      }
    }
    if (is_all) return;
  }
}

std::string NetworkFailures::missing_from(int peer) const {
  const RemotePeer& to = peer_of(peer);
  return fmt::format("{} of {} messages there were complete, {} answers were missing{}", to.acknowledged, to.sent,
                     to.unanswered, exchange_.sender.has_posted() ? ", and commands were not sent" : "");
}

void NetworkFailures::give_up(int peer, const Ending& ending) {
  const std::string reason = fmt::format("it takes nothing from this rank, which ends {}: for {} s {}", ending.what,
                                         static_cast<double>(ending.limit_ns) / 1e9, missing_from(peer));
  log(LogLevel::warning, fmt::format("rank {} is given up: {}", peer, reason), rank());
  exchange_.give_up(peer, reason);
}

void NetworkFailures::end_sources(const std::vector<int>& peers) {
  work_until(peers, {"what it has sent there after an abort", stuck_ns, true},
             [this](int peer) { return !exchange_.sender.reads_sources_for(peer); });
}

std::vector<int> NetworkFailures::settle(const std::vector<int>& left, std::int64_t deadline_ns) {
  const std::lock_guard reporting(report_mutex_);
  static_cast<void>(send_aborts());  // sent later, an abort word could abort the world that continues
  {
    const auto lock = turns_.lock();
    exchange_.peers.forget_failures();
    for (int peer = 0; peer < static_cast<int>(exchange_.peers.size()); ++peer)
      if (is_remote(peer) && std::find(left.begin(), left.end(), peer) == left.end())
        exchange_.give_up(peer, "it has ended");
    exchange_.end_lost();
  }
  for (std::vector<int> lost;;) {
    const std::size_t before = lost.size();
    work_until(left, {"an abort", static_cast<std::uint64_t>(deadline_ns)},
               [this](int peer) { return exchange_.sender.is_settled(peer); });
    const auto lock = turns_.lock();
    lost.clear();
    for (const int peer : left)
      if (is_remote(peer) && peer_of(peer).is_lost()) lost.push_back(peer);
    exchange_.end_lost();
    if (lost.size() == before) return lost;  // commands queued behind those to lost ranks are gone, too
  }
}

void NetworkFailures::forget() {
  const std::lock_guard reporting(report_mutex_);
  const auto lock = turns_.lock();
  exchange_.peers.forget_failures();
  exchange_.peers.note_abort(false);
  world_abort_.stage = WorldAbort::over;  // its word is cleared later
  static_cast<void>(exchange_.peers.take_lost(~std::uint64_t{0}));
}

}  // namespace beeline
