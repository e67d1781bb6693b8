// SPDX-License-Identifier: Apache-2.0
// What a service thread does after ranks have failed: it goes on with those that are left (service.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

#include "gaspi/process.hpp"
#include "gaspi/service.hpp"

namespace beeline::gaspi {

namespace {

/// How long operations of other threads may last after an abort; longer, if they ask a rank that does not answer.
constexpr std::chrono::seconds longest_calls{1};

/// What a rank says after a failure, before the serial numbers of its objects.
struct Standing {
  std::uint64_t begun, completed, has_executed, next_serial;
};

}  // namespace

void Service::note_failures() {
  for (int rank = 0; rank < process_.size(); ++rank) {
    beeline_health health{};
    health.struct_bytes = sizeof health;
    require_done(beeline_world_health(process_.world(), rank, &health));
    if (health.state == BEELINE_HEALTHY || !process_.health().is_healthy(rank)) continue;
    const std::string reason = health.state == BEELINE_LEFT ? "it has left the world" : health.reason;
    process_.health_->fail(rank, reason);
    process_.log(fmt::format("rank {} has failed: {}", rank, reason));
    if (rank == process_.rank()) throw Failure(fmt::format("this rank counts as failed: {}", reason));
  }
}

void Service::recover() {
  {
    const std::lock_guard lock(mutex_);
    is_recovering_ = true;
  }
  process_.remote_calls_.close(longest_calls);
  constexpr int most_futile = 3;
  for (int futile = 0;;) {
    const int failures = process_.health().failures();
    note_failures();
    beeline_team* left = nullptr;
    const beeline_status status = beeline_world_survivors(process_.world(), &left);
    if (status == BEELINE_OK) {
      members_.clear();
      for (int member = 0; member < beeline_team_size(left); ++member)
        members_.push_back(beeline_team_world_rank(left, member));
      static_cast<void>(beeline_team_destroy(left));
      try {
        agree_after_failure();
        break;
      } catch (const Lost&) {  // another rank was lost meanwhile
      }
    }
    const std::string text = beeline_last_error();
    note_failures();
    if (process_.health().failures() != failures)
      futile = 0;
    else if (++futile == most_futile)
      throw Failure(text);
  }
  note_failures();
  for (const std::unique_ptr<Extension>& extension : process_.extensions_) extension->recovered(process_);
  must_meet_ = true;
  recoveries_.fetch_add(1);
  process_.remote_calls_.open();
  const std::lock_guard lock(mutex_);
  is_recovering_ = false;
  changed_.notify_all();
}

void Service::agree_after_failure() {
  const std::vector<std::uint64_t> serials = objects_.serials();
  const Standing standing{begun_, completed_, objects_.has_executed() ? 1u : 0u, objects_.next_serial()};
  std::vector<std::byte> mine(sizeof standing + serials.size() * sizeof(std::uint64_t));
  std::memcpy(mine.data(), &standing, sizeof standing);
  if (!serials.empty()) std::memcpy(mine.data() + sizeof standing, serials.data(), mine.size() - sizeof standing);
  begun_ = 0;  // ranks that were lost in different rounds gather here
  std::uint64_t begun = standing.begun, completed = standing.completed, next = standing.next_serial;
  std::vector<std::uint64_t> common = serials;
  const auto everyones = gather(mine);
  for (const int rank : members_) {
    const std::vector<std::byte>& bytes = everyones[static_cast<std::size_t>(rank)];
    Standing theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    begun = std::max(begun, theirs.begun), completed = std::max(completed, theirs.completed);
    next = std::max(next, theirs.next_serial);
    std::vector<std::uint64_t> have((bytes.size() - sizeof theirs) / sizeof(std::uint64_t)), both;
    if (!have.empty()) std::memcpy(have.data(), bytes.data() + sizeof theirs, have.size() * sizeof(std::uint64_t));
    std::set_intersection(common.begin(), common.end(), have.begin(), have.end(), std::back_inserter(both));
    common = std::move(both);
  }
  if (objects_.has_executed()) {
    if (completed == standing.begun)
      finish(requests_, objects_.apply());  // the round's end was lost, not its effects
    else
      objects_.discard();
  }
  objects_.set_next_serial(next);
  objects_.keep(common);
  begun_ = completed_ = begun;
}

}  // namespace beeline::gaspi
