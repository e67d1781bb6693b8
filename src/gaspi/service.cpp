// SPDX-License-Identifier: Apache-2.0
#include "gaspi/service.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "gaspi/call.hpp"
#include "gaspi/clock.hpp"
#include "gaspi/config.hpp"
#include "gaspi/process.hpp"
#include "gaspi/remote_words.hpp"

namespace beeline::gaspi {

namespace {

/// What a rank says at the beginning of a round.
struct RoundHead {
  std::uint64_t round, bytes;
};

/// How long an idle service thread sleeps between two looks at its signals: short after an event, since events follow
/// each other, and long enough later that it takes less than 1 % of a core.
std::chrono::microseconds nap_after(std::uint64_t idle_ns) {
  if (idle_ns < 5'000'000) return std::chrono::microseconds(50);
  if (idle_ns < 50'000'000) return std::chrono::microseconds(500);
  return std::chrono::microseconds(10'000);
}

}  // namespace

Service::Service(Process& process) : process_(process), objects_(process) {
  // Signals of the program are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    must_stop_ = is_woken_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

// --- Application threads ------------------------------------------------------------------------------------------

Result Service::join(std::uint64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return state_ != State::joining; };
  if (timeout_ms == block_ms)
    changed_.wait(lock, is_over);
  else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_over))
    return Result::timeout;
  if (state_ == State::ended) throw Failure(end_value_, end_reason_);
  return Result::success;
}

Result Service::perform(const Request& request, const Awaited& awaited, std::uint64_t timeout_ms) {
  const auto [number, is_new] = book_.find_or_add(request);
  if (is_new) ring();
  const auto missing = [this, number = number] { return book_.missing(number); };
  Awaited known = awaited;
  known.missing = &missing;
  try {
    const Result result = wait_for(process_, known, timeout_ms, [this, number = number](std::uint64_t slice_ns) {
      return book_.await(number, slice_ns) ? BEELINE_OK : BEELINE_TIMEOUT;
    });
    book_.release(number, false);
    return result;
  } catch (const Failure&) {
    book_.release(number, true);
    throw;
  }
}

bool Service::end_calls() {
  book_.close("the process has left the world");
  return book_.await_calls(2 * process_.deadline_ns());  // a call may first post a request for up to a deadline
}

void Service::post(const Request& request) {
  static_cast<void>(book_.find_or_add(request));
  ring();
}

void Service::ring() {
  {
    // The thread may have found the request without being asked, and may leave the world meanwhile.
    const std::lock_guard in_world(ringing_);
    // If this fails, ranks were lost: then all ranks enter a round without being asked.
    if (may_ring_)
      static_cast<void>(beeline_signal_add(process_.world_team_, signals_ + doorbell, 1, coordinator(), service_queue));
  }
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

bool Service::await_recovery(std::uint64_t limit_ns) {
  std::unique_lock lock(mutex_);
  const auto goes_on = [this] {
    return state_ != State::running || (!is_recovering_ && beeline_team_failed(process_.world_team()) == 0);
  };
  const bool is_over = changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns), goes_on);
  if (!end_reason_.empty()) throw Failure(end_reason_);
  return is_over;
}

std::string Service::end_reason() const {
  const std::lock_guard lock(mutex_);
  return end_reason_;
}

bool Service::read_heartbeat(int rank, std::uint64_t& beats) const {
  const auto read = [&] {  // atomically
    return beeline_fetch_add(process_.world_team(), signals_ + heartbeat, 0, rank, &beats);
  };
  return process_.ask(rank, read) == BEELINE_OK;
}

// --- The thread ---------------------------------------------------------------------------------------------------

void Service::serve() noexcept {
  try {
    join_world();
    set_state(State::running);
    loop();
  } catch (const Lost& lost) {
    end(lost.text);
  } catch (const Failure& failure) {
    end(failure.what(), failure.value());
  } catch (const std::exception& error) {
    end(error.what());
  }
}

// A rank may come later than a deadline. The other ranks' attempts to join then end, at slightly different times, and
// they try again: one that does so early sees that others have left the last attempt.
beeline_status Service::create_world() {
  constexpr int most_deaths = 10;
  for (int deaths = 0;;) {
    const beeline_status joined = beeline_world_create(nullptr, &process_.world_);
    const bool is_peer_lost = joined == BEELINE_PEER_DIED || joined == BEELINE_ABORTED;
    if (!is_peer_lost && joined != BEELINE_DEADLINE) return joined;
    if (is_peer_lost && ++deaths == most_deaths) return joined;
    if (joined == BEELINE_DEADLINE) log_failure("gaspi_proc_init", beeline_last_error()), deaths = 0;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return must_stop_; })) return joined;
  }
}

void Service::join_world() {
  const beeline_status joined = create_world();
  if (joined == BEELINE_INVALID_ARGUMENT) throw Failure(GASPI_ERR_ENV, beeline_last_error());
  require_done(joined);
  beeline_team* const team = process_.world_team_ = beeline_world_team(process_.world_);
  process_.rank_ = beeline_team_rank(team), process_.size_ = beeline_team_size(team);
  beeline_device device{};
  device.struct_bytes = sizeof device;
  require_done(beeline_world_device(process_.world_, process_.rank_, &device));
  process_.has_gpu_ = device.kind == BEELINE_GPU;
  beeline_context context;
  require_done(beeline_team_host_context(team, sizeof context, &context));
  process_.deadline_ns_ = context.deadline_ns;
  process_.segments_ = std::make_unique<SegmentTable>(process_.size_);
  process_.health_ = std::make_unique<HealthTable>(process_.size_);
  process_.connections_ = std::make_unique<Connections>(process_.size_, process_.rank_,
                                                        configuration().build_infrastructure != GASPI_TOPOLOGY_NONE);
  for (int rank = 0; rank < process_.size_; ++rank) members_.push_back(rank);
  require_done(beeline_allocate_signals(team, words, BEELINE_HEAP_PINNED, &signals_));
  objects_.make_first_team(process_.groups_.create(), members_);
  for (const std::unique_ptr<Extension>& extension : process_.extensions_) extension->open(process_);
  last_round_ns_ = idle_since_ns_ = now_ns();
}

void Service::loop() {
  for (;;) {
    try {
      {
        const std::lock_guard lock(mutex_);
        if (must_stop_ || state_ == State::left) return;
      }
      if (beeline_team_failed(process_.world_team()) != 0)
        recover();
      else if (is_round_due())
        round();
      else
        sleep();
    } catch (const Lost& lost) {
      // The abort of the world follows, unless this rank alone saw the failure.
      const std::uint64_t start = now_ns();
      while (beeline_team_failed(process_.world_team()) == 0)
        if (now_ns() - start > process_.deadline_ns())
          throw;
        else
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Service::sleep() {
  std::atomic_ref<std::uint64_t>(signals_[heartbeat]).fetch_add(1, std::memory_order_relaxed);
  for (const std::unique_ptr<Extension>& extension : process_.extensions_)
    if (extension->serve(process_)) idle_since_ns_ = now_ns();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, nap_after(now_ns() - idle_since_ns_), [this] { return is_woken_; });
  if (std::exchange(is_woken_, false)) idle_since_ns_ = now_ns();
}

int Service::coordinator() const {
  for (int rank = 0; rank < process_.size(); ++rank)
    if (process_.health().is_healthy(rank)) return rank;
  return process_.rank();
}

std::uint64_t Service::word(Word which) const { return load_acquired(signals_[which]); }

bool Service::is_round_due() {
  if (must_meet_ || word(round_number) > begun_) return true;
  if (coordinator() == process_.rank() && word(doorbell) != rung_) return true;
  return now_ns() - last_round_ns_ > std::max<std::uint64_t>(process_.deadline_ns() / 3, 1'000'000'000);
}

void Service::start_round_elsewhere() {
  rung_ = word(doorbell);
  for (const int rank : members_)
    if (rank != process_.rank())
      static_cast<void>(
          is_done(beeline_signal(process_.world_team(), signals_ + round_number, begun_, rank, service_queue)));
}

std::vector<std::vector<std::byte>> Service::gather(std::span<const std::byte> mine) const {
  const auto ranks = static_cast<std::size_t>(process_.size());
  const RoundHead head{begun_, mine.size()};
  std::vector<RoundHead> heads(ranks, RoundHead{begun_, 0});
  std::vector<std::size_t> sizes(ranks);
  require_done(
      beeline_allgather_bytes(process_.world_team(), &head, sizeof head, heads.data(), sizeof head, sizes.data()));
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (sizes[rank] == 0) continue;
    if (heads[rank].round != begun_)
      throw Failure(fmt::format("rank {} is in round {} of the service threads, rank {} in round {}", process_.rank(),
                                begun_, rank, heads[rank].round));
    most = std::max<std::size_t>(most, heads[rank].bytes);
  }
  std::vector<std::vector<std::byte>> all(ranks);
  if (most == 0) return all;
  std::vector<std::byte> rows(ranks * most);
  require_done(
      beeline_allgather_bytes(process_.world_team(), mine.data(), mine.size(), rows.data(), most, sizes.data()));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(rank * most);
    all[rank].assign(row, row + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return all;
}

void Service::round() {
  ++begun_;
  must_meet_ = false;
  std::atomic_ref<std::uint64_t>(signals_[heartbeat]).fetch_add(1, std::memory_order_relaxed);
  if (coordinator() == process_.rank()) start_round_elsewhere();
  const RequestBook::Number made = book_.made();
  requests_ = book_.pending();
  std::vector<Item> mine;
  for (const RequestBook::Numbered& each : requests_) mine.push_back(item_of(each.request, process_.rank()));
  std::vector<std::vector<Item>> items;
  bool has_items = false;
  for (const std::vector<std::byte>& bytes : gather(encode(mine))) {
    items.push_back(decode(bytes));
    has_items = has_items || !bytes.empty();
  }
  last_round_ns_ = now_ns();
  if (has_items) idle_since_ns_ = last_round_ns_;
  std::vector<bool> takes_part(items.size(), false);
  for (const int rank : members_) takes_part[static_cast<std::size_t>(rank)] = true;
  note_missing(items, mine);
  const Plan plan = has_items ? plan_round(items, takes_part, objects_.teams()) : Plan{};
  if (!plan.kills.empty()) return await_deaths(plan);
  if (!plan.is_empty()) {
    objects_.execute(plan, requests_);
    static_cast<void>(gather({}));  // all ranks have executed it
    finish(requests_, objects_.apply());
  }
  completed_ = begun_;
  last_round_ns_ = now_ns();
  if (plan.leaves) return leave();
  // The coordinator may have taken the ring of a request that came after this rank's contribution as a call for this
  // round.
  if (book_.made() != made) ring();
}

void Service::note_missing(const std::vector<std::vector<Item>>& items, const std::vector<Item>& mine) {
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool is_joint = is_of_group(mine[i].action);
    if (!is_joint && mine[i].action != Action::leave) continue;
    const std::vector<int>& ranks = is_joint ? requests_[i].request.ranks : members_;
    book_.note_missing(requests_[i].number, missing_ranks(items, mine[i], ranks));
  }
}

void Service::await_deaths(const Plan& plan) {
  std::vector<Outcome> outcomes;
  bool is_any_alive = false;
  for (std::size_t i = 0; i < plan.kills.size(); ++i) {
    const int killed = plan.killed[i];
    if (killed == process_.rank()) {
      process_.log(fmt::format("rank {} ends this rank (gaspi_proc_kill)", plan.kills[i].rank));
      raise(SIGKILL);
    }
    const bool is_alive = std::binary_search(members_.begin(), members_.end(), killed);
    is_any_alive = is_any_alive || is_alive;
    if (!is_alive && plan.kills[i].rank == process_.rank()) outcomes.push_back({plan.kills[i].index, 0, {}});
  }
  finish(requests_, outcomes);
  completed_ = begun_;
  if (!is_any_alive) {
    must_meet_ = true;  // the other requests follow
    return;
  }
  const std::uint64_t start = now_ns();
  while (beeline_team_failed(process_.world_team()) == 0 && now_ns() - start < process_.deadline_ns())
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void Service::finish(const std::vector<RequestBook::Numbered>& requests, const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) book_.finish(requests[outcome.index].number, outcome.value, outcome.text);
}

// --- The end ------------------------------------------------------------------------------------------------------

void Service::leave() {
  try {
    for (const std::unique_ptr<Extension>& extension : process_.extensions_) extension->close(process_);
    objects_.end_all();
  } catch (const Lost& lost) {
    process_.log(fmt::format("while leaving: {}", lost.text));
  }
  {
    const std::lock_guard no_rings(ringing_);
    may_ring_ = false;
  }
  const beeline_status status = beeline_world_close(process_.world_);
  if (status != BEELINE_OK) process_.log(fmt::format("while leaving: {}", beeline_last_error()));
  process_.world_ = nullptr, process_.world_team_ = nullptr;
  set_state(State::left);
  for (const RequestBook::Numbered& each : requests_)
    if (each.request.action == Action::leave) book_.finish(each.number, 0, "");
  book_.close("the process has left the world");
}

void Service::end(const std::string& reason, std::int32_t value) {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::ended;
    is_recovering_ = false;
    end_reason_ = reason, end_value_ = value;
    changed_.notify_all();
  }
  book_.close(reason);
}

void Service::set_state(State state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  changed_.notify_all();
}

}  // namespace beeline::gaspi
