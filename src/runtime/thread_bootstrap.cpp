// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
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

/// One allgather. Once over, it has everyone's bytes, or an error that is the same for all who waited, and stays so: a
/// rank that is slow to wake up reads its own round, whatever the others did since.
struct Round {
  bool over = false;
  Status status = Status::ok;
  std::string message;
  Blobs blobs;
};

struct Member {
  std::optional<std::vector<std::byte>> contribution;
  bool left = false;
  std::mutex handler_mutex;  ///< held while the handler runs, so that replacing it waits for its end
  Bootstrap::AbortHandler handler;
  bool told = false;  ///< the handler has run, or must not
};

/// What the ranks of one process share. `mutex` guards all but the handlers.
class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : members_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  Blobs allgather(int rank, std::span<const std::byte> mine, const detail::Deadline& deadline);
  void on_abort(int rank, Bootstrap::AbortHandler handler);
  /// The first failure stays, and is told to every rank but `silent`, which knows.
  void fail(const WorldFailure& failure, int silent);
  void leave(int rank);

 private:
  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::vector<int> ranks_where(const std::function<bool(const Member&)>& predicate) const;
  [[nodiscard]] std::vector<int> ranks_that_left() const;
  void end_round(Status status, const std::string& message, Blobs blobs = {});
  void tell(int rank);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::shared_ptr<Round> round_ = std::make_shared<Round>();
  std::optional<WorldFailure> failure_;  ///< constant once set
};

std::vector<int> ThreadWorld::ranks_where(const std::function<bool(const Member&)>& predicate) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (predicate(members_[static_cast<std::size_t>(rank)])) ranks.push_back(rank);
  return ranks;
}

std::vector<int> ThreadWorld::ranks_that_left() const {
  return ranks_where([](const Member& each) { return each.left; });
}

void ThreadWorld::end_round(Status status, const std::string& message, Blobs blobs) {
  for (Member& each : members_) each.contribution.reset();
  *round_ = {true, status, message, std::move(blobs)};
  round_ = std::make_shared<Round>();
  changed_.notify_all();
}

Blobs ThreadWorld::allgather(int rank, std::span<const std::byte> mine, const detail::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (const auto left = ranks_that_left(); !left.empty()) {
    lock.unlock();
    fail({left.front(), Status::peer_died, detail::left_message(left)}, rank);
    lock.lock();
  }
  if (failure_) throw Error(failure_->status, failure_->reason, rank);
  member(rank).contribution.emplace(mine.begin(), mine.end());
  const std::shared_ptr<const Round> round = round_;
  const auto missing = [&] { return ranks_where([](const Member& each) { return !each.contribution; }); };
  if (missing().empty()) {
    Blobs blobs;
    for (Member& each : members_) blobs.push_back(std::move(*each.contribution));
    end_round(Status::ok, {}, std::move(blobs));
  }
  if (!changed_.wait_until(lock, deadline.end(), [&] { return round->over; }))
    end_round(Status::deadline, detail::missing_message(deadline.total_seconds(), missing(), {}));
  lock.unlock();  // a round that is over does not change
  if (round->status != Status::ok) throw Error(round->status, round->message, rank);
  return round->blobs;
}

void ThreadWorld::on_abort(int rank, Bootstrap::AbortHandler handler) {
  {
    const std::scoped_lock lock(member(rank).handler_mutex);
    member(rank).handler = std::move(handler);
  }
  tell(rank);
}

void ThreadWorld::tell(int rank) {
  const std::scoped_lock lock(member(rank).handler_mutex);
  {
    const std::scoped_lock state(mutex_);
    if (!failure_) return;
  }
  if (!member(rank).handler || member(rank).told) return;
  member(rank).told = true;
  member(rank).handler(failure_->culprit, failure_->reason);
}

void ThreadWorld::fail(const WorldFailure& failure, int silent) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    end_round(failure.status, failure.reason);
  }
  {
    const std::scoped_lock lock(member(silent).handler_mutex);
    member(silent).told = true;
  }
  for (int rank = 0; rank < size(); ++rank) tell(rank);
}

void ThreadWorld::leave(int rank) {
  on_abort(rank, nullptr);
  bool awaited;
  {
    const std::scoped_lock lock(mutex_);
    member(rank).left = true;
    awaited = !ranks_where([](const Member& each) { return each.contribution.has_value(); }).empty();
  }
  if (awaited) fail({rank, Status::peer_died, detail::left_message({rank})}, rank);
}

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(int rank, std::shared_ptr<ThreadWorld> world) : rank_(rank), world_(std::move(world)) {}
  ~ThreadBootstrap() override { world_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_->size(); }
  [[nodiscard]] Blobs allgather(std::span<const std::byte> mine, std::int64_t deadline_ns) override {
    return world_->allgather(rank_, mine, detail::Deadline(deadline_ns));
  }
  [[nodiscard]] std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) override;
  void on_abort(AbortHandler handler) override { world_->on_abort(rank_, std::move(handler)); }
  void abort(const std::string& reason) override {
    world_->fail({rank_, Status::aborted, fmt::format("rank {} aborted: {}", rank_, reason)}, rank_);
  }

 private:
  int rank_;
  std::shared_ptr<ThreadWorld> world_;
};

std::vector<FileDescriptor> ThreadBootstrap::exchange_descriptors(int mine, std::int64_t deadline_ns) {
  const detail::Deadline deadline(deadline_ns);
  std::vector<FileDescriptor> all;
  for (const auto& blob : world_->allgather(rank_, std::as_bytes(std::span(&mine, 1)), deadline)) {
    const int theirs = *reinterpret_cast<const int*>(blob.data());
    FileDescriptor copy(theirs < 0 ? -1 : ::fcntl(theirs, F_DUPFD_CLOEXEC, 0));
    if (theirs >= 0 && !copy)
      throw Error(
          Status::no_resource,
          fmt::format("descriptor of rank {} cannot be duplicated: {}", all.size(), detail::system_message(errno)),
          rank_);
    all.push_back(std::move(copy));
  }
  barrier(deadline.remaining_ns());  // the owners may close theirs only after everyone has a duplicate
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
