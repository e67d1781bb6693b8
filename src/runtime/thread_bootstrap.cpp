// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"
#include "runtime/socket.hpp"

namespace beeline {

namespace {

using Blobs = std::vector<std::vector<std::byte>>;

/// One allgather. Once it is over, it has the bytes of all ranks, or an error that is the same for all that waited, and
/// does not change: a rank that is slow to wake up reads its own round, whatever later calls do.
struct MeetingRound {
  bool over = false;
  Status status = Status::ok;
  std::string message;
  Blobs blobs;
};

struct Member {
  std::optional<std::vector<std::byte>> contribution;
  bool asks = false;  ///< waits in agree_on_survivors
  bool calls = true;  ///< calls are collective over these ranks
  RankHealth health;
  std::mutex handler_mutex;  ///< held while the handler runs, so that replacing it waits for the handler's end
  Bootstrap::AbortHandler handler;
  std::size_t reported = 0;  ///< failures reported to a handler; guarded by handler_mutex
};

/// One agreement on survivors; see MeetingRound.
struct Agreement {
  bool over = false;
  std::vector<int> survivors;
};

/// State that the ranks of one process share. `mutex` guards all but the handlers.
class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : members_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  Blobs allgather(int rank, std::span<const std::byte> mine, const detail::Deadline& deadline);
  std::vector<int> agree_on_survivors(int rank, const detail::Deadline& deadline);
  [[nodiscard]] std::vector<RankHealth> health() const;
  void on_abort(int rank, Bootstrap::AbortHandler handler);
  /// Records the first failure of each culprit, and reports it to every rank, except a rank's own abort to itself.
  void fail(const WorldFailure& failure);
  void leave(int rank);

 private:
  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::vector<int> ranks_where(const std::function<bool(const Member&)>& predicate) const;
  [[nodiscard]] std::vector<int> ranks_that_left() const;
  void refuse_excluded(int rank);
  void end_round(Status status, const std::string& message, Blobs blobs = {});
  void settle();
  /// Called with `mutex_` held. Returns whether the failure is the first of its culprit.
  bool record(const WorldFailure& failure);
  void report_to(int rank);
  void report_to_all();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::shared_ptr<MeetingRound> round_ = std::make_shared<MeetingRound>();
  std::shared_ptr<Agreement> agreement_ = std::make_shared<Agreement>();
  std::vector<WorldFailure> failures_;
  std::optional<WorldFailure> failure_;  ///< the first since the ranks last agreed on survivors
};

std::vector<int> ThreadWorld::ranks_where(const std::function<bool(const Member&)>& predicate) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (predicate(members_[static_cast<std::size_t>(rank)])) ranks.push_back(rank);
  return ranks;
}

std::vector<int> ThreadWorld::ranks_that_left() const {
  return ranks_where([](const Member& each) { return each.calls && each.health.state == RankState::left; });
}

void ThreadWorld::end_round(Status status, const std::string& message, Blobs blobs) {
  for (Member& each : members_) each.contribution.reset();
  *round_ = {true, status, message, std::move(blobs)};
  round_ = std::make_shared<MeetingRound>();
  changed_.notify_all();
}

void ThreadWorld::refuse_excluded(int rank) {
  const RankHealth& health = member(rank).health;
  if (health.state == RankState::failed)
    throw Error(Status::aborted, fmt::format("rank {} is not among those that are left: {}", rank, health.reason),
                rank);
}

Blobs ThreadWorld::allgather(int rank, std::span<const std::byte> mine, const detail::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (!failure_) refuse_excluded(rank);
  if (const auto left = ranks_that_left(); !failure_ && !left.empty()) {
    lock.unlock();
    fail({left.front(), Status::peer_died, detail::left_message(left)});
    lock.lock();
  }
  if (failure_) throw Error(failure_->status, failure_->reason, rank);
  if (const auto asking = ranks_where([](const Member& each) { return each.asks; }); !asking.empty())
    throw Error(Status::aborted, detail::asks_message(asking.front()), rank);
  member(rank).contribution.emplace(mine.begin(), mine.end());
  const std::shared_ptr<const MeetingRound> round = round_;
  const auto missing = [&] { return ranks_where([](const Member& each) { return each.calls && !each.contribution; }); };
  if (missing().empty()) {
    Blobs blobs(members_.size());
    for (std::size_t each = 0; each < members_.size(); ++each)
      if (members_[each].contribution) blobs[each] = std::move(*members_[each].contribution);
    end_round(Status::ok, {}, std::move(blobs));
  }
  if (!detail::wait_until(changed_, lock, deadline, rank, [&] { return round->over; }))
    end_round(Status::deadline, detail::missing_message(deadline.total_seconds(), missing(), {}));
  lock.unlock();  // a round that is over does not change
  if (round->status != Status::ok) throw Error(round->status, round->message, rank);
  return round->blobs;
}

std::vector<int> ThreadWorld::agree_on_survivors(int rank, const detail::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  refuse_excluded(rank);
  const std::shared_ptr<const Agreement> agreement = agreement_;
  member(rank).asks = true;
  // An allgather in which other ranks wait cannot complete: these ranks get an error, and ask for the survivors, too.
  end_round(Status::aborted, detail::asks_message(rank));
  settle();
  const auto over = [&] { return agreement->over || member(rank).health.state == RankState::failed; };
  const bool is_late = !detail::wait_until(changed_, lock, deadline, rank, over);
  // Under the lock, so that a rank that answers now is not failed after an agreement with it. The last failure
  // completes the agreement.
  if (is_late)
    for (const int other :
         ranks_where([](const Member& each) { return each.health.state == RankState::healthy && !each.asks; }))
      record({other, Status::peer_died, detail::unanswered_message(other, rank, deadline.total_seconds()), rank});
  if (!agreement->over) refuse_excluded(rank);
  lock.unlock();  // an agreement that is over does not change
  if (is_late)
    report_to_all();
  else
    report_to(rank);  // reports every failure that the agreement settles
  return agreement->survivors;
}

/// Completes the agreement once every healthy rank waits in it.
void ThreadWorld::settle() {
  const auto healthy = ranks_where([](const Member& each) { return each.health.state == RankState::healthy; });
  if (healthy.empty() || std::any_of(healthy.begin(), healthy.end(), [this](int rank) { return !member(rank).asks; }))
    return;
  for (Member& each : members_) each.asks = false, each.calls = each.health.state == RankState::healthy;
  failure_.reset();
  *agreement_ = {true, healthy};
  agreement_ = std::make_shared<Agreement>();
  changed_.notify_all();
}

std::vector<RankHealth> ThreadWorld::health() const {
  const std::scoped_lock lock(mutex_);
  std::vector<RankHealth> all;
  for (const Member& each : members_) all.push_back(each.health);
  return all;
}

void ThreadWorld::on_abort(int rank, Bootstrap::AbortHandler handler) {
  {
    const std::scoped_lock lock(member(rank).handler_mutex);
    member(rank).handler = std::move(handler);
  }
  report_to(rank);
}

void ThreadWorld::report_to(int rank) {
  const std::scoped_lock lock(member(rank).handler_mutex);
  if (!member(rank).handler) return;
  std::vector<WorldFailure> unreported;
  {
    const std::scoped_lock state(mutex_);
    unreported.assign(failures_.begin() + static_cast<std::ptrdiff_t>(member(rank).reported), failures_.end());
    member(rank).reported = failures_.size();
  }
  for (const WorldFailure& each : unreported)
    if (each.culprit != rank || each.noticed_by != rank) member(rank).handler(each.culprit, each.reason);
}

bool ThreadWorld::record(const WorldFailure& failure) {
  for (const WorldFailure& known : failures_)
    if (known.culprit == failure.culprit) return false;
  RankHealth& health = member(failure.culprit).health;
  if (health.state == RankState::healthy) health = {RankState::failed, failure.noticed_by, failure.reason};
  member(failure.culprit).asks = false;
  failures_.push_back(failure);
  if (!failure_) failure_ = failure;
  end_round(failure.status, failure.reason);
  settle();
  return true;
}

void ThreadWorld::report_to_all() {
  for (int rank = 0; rank < size(); ++rank) report_to(rank);
}

void ThreadWorld::fail(const WorldFailure& failure) {
  {
    const std::scoped_lock lock(mutex_);
    if (!record(failure)) return;
  }
  report_to_all();
}

void ThreadWorld::leave(int rank) {
  on_abort(rank, nullptr);
  bool awaited;
  {
    const std::scoped_lock lock(mutex_);
    if (member(rank).health.state == RankState::healthy) member(rank).health.state = RankState::left;
    awaited = !ranks_where([](const Member& each) { return each.contribution.has_value(); }).empty();
    settle();
  }
  if (awaited) fail({rank, Status::peer_died, detail::left_message({rank})});
}

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(int rank, std::shared_ptr<ThreadWorld> world) : rank_(rank), world_(std::move(world)) {}
  ~ThreadBootstrap() override { world_->leave(rank_); }
  void leave() override { world_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_->size(); }
  [[nodiscard]] Blobs allgather(std::span<const std::byte> mine, std::int64_t deadline_ns) override {
    return world_->allgather(rank_, mine, detail::Deadline(deadline_ns));
  }
  [[nodiscard]] std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) override;
  void set_neighbors(std::vector<int> ranks) override { neighbors_ = std::move(ranks); }
  void on_abort(AbortHandler handler) override { world_->on_abort(rank_, std::move(handler)); }
  void abort(const std::string& reason) override {
    world_->fail({rank_, Status::aborted, fmt::format("rank {} aborted: {}", rank_, reason), rank_});
  }
  [[nodiscard]] std::vector<RankHealth> health() const override { return world_->health(); }
  [[nodiscard]] std::vector<int> agree_on_survivors(std::int64_t deadline_ns) override {
    return world_->agree_on_survivors(rank_, detail::Deadline(deadline_ns));
  }

 private:
  [[nodiscard]] bool is_neighbor(std::size_t rank) const {
    return neighbors_.empty() || std::binary_search(neighbors_.begin(), neighbors_.end(), static_cast<int>(rank));
  }

  int rank_;
  std::shared_ptr<ThreadWorld> world_;
  std::vector<int> neighbors_;  ///< ranks that descriptors come from; empty: all
};

std::vector<FileDescriptor> ThreadBootstrap::exchange_descriptors(int mine, std::int64_t deadline_ns) {
  const detail::Deadline deadline(deadline_ns);
  std::vector<FileDescriptor> all;
  std::string failure;
  for (const auto& blob : world_->allgather(rank_, std::as_bytes(std::span(&mine, 1)), deadline)) {
    int theirs = -1;  // -1 for a rank that has failed or left
    if (blob.size() == sizeof theirs) std::memcpy(&theirs, blob.data(), sizeof theirs);
    if (!is_neighbor(all.size())) theirs = -1;
    FileDescriptor copy(theirs < 0 ? -1 : ::fcntl(theirs, F_DUPFD_CLOEXEC, 0));
    if (theirs >= 0 && !copy && failure.empty())
      failure =
          fmt::format("descriptor of rank {} cannot be duplicated: {}", all.size(), detail::system_message(errno));
    all.push_back(std::move(copy));
  }
  barrier(deadline.remaining_ns());  // owners may close their descriptors only once all ranks have duplicated them
  if (!failure.empty()) throw Error(Status::no_resource, failure, rank_);
  return all;
}

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> make_thread_bootstraps(int size) {
  require(size >= 1 && size <= static_cast<int>(max_ranks), Status::invalid_argument,
          fmt::format("a world has 1 to {} ranks, not {}", max_ranks, size));
  const auto world = std::make_shared<ThreadWorld>(size);
  std::vector<std::unique_ptr<Bootstrap>> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(std::make_unique<ThreadBootstrap>(rank, world));
  return all;
}

}  // namespace beeline
