// SPDX-License-Identifier: Apache-2.0
// Which thread works: a thread that posts commands sends them, and threads that wait carry out arriving messages. If no
// thread waits, the engine's own thread works; it sleeps until the network has events. If the rank's device copies, the
// engine's thread does all the work.
#include "transports/network_engine.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/wait_policy.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "core/thread.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"
#include "transports/remote_exchange.hpp"
#include "transports/turns.hpp"
#include "transports/waiting_helpers.hpp"

namespace beeline {

namespace {

/// The engine's thread looks for work for this long before it sleeps.
constexpr std::uint64_t network_spin_ns = 50'000;
/// A thread that has posted a command with an answer, such as a get, first polls for the answer for this long: its wait
/// would poll less often.
constexpr std::uint64_t answer_spin_ns = 30'000;
/// A yield delays what arrives meanwhile.
constexpr unsigned idle_turns_per_yield = 4;
/// Polls of the network in a turn of a thread for which something is likely to arrive soon: a poll takes a fraction of
/// a turn.
constexpr unsigned polls_per_turn = 4;
/// Time after a waiting thread's work within which more work is likely.
constexpr std::uint64_t likely_work_ns = 20'000;
/// As `network_spin_ns`, for the rank of a GPU, which cannot wake the engine's thread.
constexpr std::uint64_t gpu_spin_ns = 200'000;
/// Longest sleep of the engine's thread. It then reads the abort words, because storing one wakes no thread.
constexpr int longest_sleep_us = 10'000;
/// Time from the loss of a connection to its report, in which the cause of the peer's end may be reported first.
constexpr std::uint64_t lost_ns = 1'000'000'000;
/// Time between two looks for failures while the engine's thread is awake.
constexpr std::uint64_t report_period_ns = 1'000'000;
/// After an abort, the sources of data that a rank has not accepted for this long are copied, so that the caller gets
/// its error. If the transport cannot copy them, the rank is given up.
constexpr std::uint64_t stuck_ns = 1'000'000'000;
/// Time between two logs of a rank that completes its messages slowly.
constexpr std::uint64_t slow_ns = 100'000'000;

class NetworkEngine final : public Engine, Waker, detail::WaitWork, UnmapWatcher {
 public:
  NetworkEngine(std::unique_ptr<RemoteExchange> exchange, FailureEvents events)
      : connected_(std::move(exchange)), exchange_(*connected_), plan_(exchange_.peers.plan()),
        events_(std::move(events)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    require(static_cast<bool>(bell_), Status::no_resource, "no eventfd for the network's engine");
    pollset_.push_back({bell_.get(), POLLIN, 0});
    for (const auto& worker : exchange_.workers) pollset_.push_back({worker->descriptor(), POLLIN, 0});
  }
  ~NetworkEngine() override;

  [[nodiscard]] PeerRoute route_to(int peer) const override;
  void serve(const EngineClient& client) override;
  void open_queue(CarriedQueue& queue) override;
  void close_queue(CarriedQueue& queue) override;
  void end_sources(const std::vector<int>& peers) override;
  [[nodiscard]] std::vector<int> settle(const std::vector<int>& left, std::int64_t deadline_ns) override;
  void forget_failures() override;
  [[nodiscard]] NetworkStatistics network_statistics() const override {
    const auto lock = turns_.lock();
    return exchange_.keys.statistics();
  }

 private:
  // UnmapWatcher
  void before_unmap(const std::byte* start, std::int64_t deadline_ns) override;
  void after_unmap(const std::byte* start) noexcept override;
  /// Sets the waker that threads which post to `ring` call; nullptr: none.
  void set_waker(CommandRing& ring, Waker* waker);
  void wake() noexcept override;  // Waker
  /// For threads that post and may not do all of the work.
  class SendingWaker final : public Waker {
   public:
    explicit SendingWaker(NetworkEngine& engine) : engine_(engine) {}
    void wake() noexcept override { engine_.send_or_wake_thread(); }

   private:
    NetworkEngine& engine_;
  };
  void send_or_wake_thread() noexcept;
  bool work() noexcept override;  // WaitWork
  /// Returns whether its turns have left work: see RemoteExchange::has_left_work.
  bool look_for_answer();
  /// Does some work. If another thread is working, that thread looks for work again instead.
  template <class Work>
  bool try_work(Work some) noexcept;
  /// Work that this rank completes after a failure, and for how long a peer may make no progress with it before the
  /// peer is given up.
  struct Ending {
    const char* what;
    std::uint64_t limit_ns;
    bool may_copy = false;  ///< copies the sources instead, so that the peer need not be given up
  };
  /// Progress of a peer, and since when it has made none.
  struct Waited {
    std::uint64_t progress = 0, since_ns = 0;
    bool has_ended = false;
  };
  /// Works until `is_over(peer)` for each of the peers that is not given up. Waits for all at once: of many that do not
  /// answer, the last is given up no later than the first.
  template <class IsOver>
  void work_until(const std::vector<int>& peers, const Ending& ending, IsOver is_over);
  void give_up(int peer, const Ending& ending);
  /// What this rank still expects from a peer, for logs and errors.
  [[nodiscard]] std::string missing_from(int peer) const;
  void ring() noexcept;
  void ring_if_asleep() noexcept;
  void run();
  void sleep();
  /// Sleeps while waiting threads do the work. Returns whether they do, and nothing rang meanwhile.
  bool rest_while_helped(std::uint64_t now);
  /// Returns whether the bell was rung.
  bool rest(std::uint64_t ns, bool heeds_network);
  [[nodiscard]] const RemotePeer& peer_of(int rank) const { return exchange_.peers[static_cast<std::uint32_t>(rank)]; }
  [[nodiscard]] bool is_remote(int rank) const { return peer_of(rank).is_remote; }
  /// Whether this engine's thread does all the work.
  [[nodiscard]] bool works_alone() const { return plan_.is_staged[static_cast<std::size_t>(plan_.rank)]; }
  /// Returns whether there was any failure.
  bool report_failures();
  bool send_aborts();
  /// Whether the world is aborted, this rank's kernels see it, and the survivors have not settled yet.
  bool is_abort_seen();

  const std::unique_ptr<RemoteExchange> connected_;
  RemoteExchange& exchange_;  ///< used by the thread whose turn it is
  const NetworkPlan& plan_;
  const FailureEvents events_;
  std::uint64_t spin_ns_ = network_spin_ns;
  int longest_sleep_us_ = longest_sleep_us;
  mutable WorkTurns turns_;
  SendingWaker sending_waker_{*this};
  std::mutex report_mutex_;  ///< held while failures are reported
  EngineClient client_;
  FileDescriptor bell_;
  std::vector<pollfd> pollset_;  ///< descriptors of `bell_` and of the workers
  WaitingHelpers helpers_;
  enum class Rest { none, helped, asleep };
  std::atomic<Rest> resting_{Rest::none};    ///< what the engine's thread does
  std::atomic<std::uint64_t> worked_at_{0};  ///< time at which a waiting thread last had work
  std::atomic<bool> closing_{false};
  std::array<std::uint64_t, max_teams> reported_aborts_{};  ///< abort words that the other nodes know
  struct WorldAbort {
    enum Stage { unseen, seen, over } stage = unseen;  ///< whether the kernels see it, or the survivors have settled
    std::uint64_t word = 0;                            ///< 0: the world is not aborted
  } world_abort_;
  std::thread thread_;
};

NetworkEngine::~NetworkEngine() {
  if (!thread_.joinable()) return;
  client_.memory_users->unwatch(*this);
  if (!works_alone()) detail::remove_wait_work(*this);
  closing_ = true;
  ring();
  thread_.join();
  for (CommandRing* ring : client_.rings) set_waker(*ring, nullptr);
  const NetworkStatistics all = exchange_.keys.statistics();
  if (all.key_hits + all.key_misses + all.key_overlaps != 0)
    log(LogLevel::info,
        fmt::format("{} puts and gets went by memory keys; in messages {} that had none, and {} that overlap others",
                    all.key_hits, all.key_misses, all.key_overlaps),
        plan_.rank);
}

void NetworkEngine::set_waker(CommandRing& ring, Waker* waker) {
  detail::SystemAtomic<std::uint64_t>(ring.asleep.value)
      .store(reinterpret_cast<std::uintptr_t>(waker), std::memory_order_release);
}

PeerRoute NetworkEngine::route_to(int peer) const {
  const auto node = [this](int rank) { return plan_.node_of[static_cast<std::size_t>(rank)]; };
  if (node(peer) == node(plan_.rank)) return {};
  return {PeerAccess::engine,
          fmt::format("rank {} is on node {}, rank {} on node {}: {} carries operations{}", peer, node(peer),
                      plan_.rank, node(plan_.rank), peer_of(peer).transport->label(), exchange_.keys.uses_of(peer))};
}

void NetworkEngine::serve(const EngineClient& client) {
  client_ = client;
  if (client_.device.is_gpu()) {
    spin_ns_ = plan_.poll_us == 0 ? ~std::uint64_t{0} : gpu_spin_ns;
    longest_sleep_us_ = std::min(longest_sleep_us, plan_.poll_us);
  }
  exchange_.serve(client_);
  for (CommandRing* ring : client_.rings) set_waker(*ring, this);
  thread_ = detail::start_thread_for("the network's engine", [this] { run(); });
  if (!works_alone()) detail::add_wait_work(*this);
  client_.memory_users->watch(*this);
}

/// Does the engine's work until all ranks have given back their keys of the piece: messages that arrive before those of
/// the returned keys are carried out, too.
void NetworkEngine::before_unmap(const std::byte* start, std::int64_t deadline_ns) {
  {
    const auto lock = turns_.lock();
    if (!exchange_.keys.end_keys(start)) return;
  }
  for (const detail::Deadline deadline(deadline_ns);;) {
    {
      const auto lock = turns_.lock();
      const bool is_late = deadline.passed();
      static_cast<void>(exchange_.turn());
      const std::vector<int> holders = exchange_.keys.holders_of(start);
      if (holders.empty()) return exchange_.keys.unregister(start);
      if (is_late)
        throw Error(Status::deadline,
                    fmt::format("memory is not unmapped: {} uses a key of it, and has not given the key back for "
                                "{} s",
                                detail::rank_list(holders), deadline.total_seconds()),
                    plan_.rank);
    }
    ::sched_yield();
  }
}

void NetworkEngine::after_unmap(const std::byte* start) noexcept {
  const auto lock = turns_.lock();
  exchange_.keys.forget(start);
}

void NetworkEngine::open_queue(CarriedQueue& queue) {
  const auto lock = turns_.lock();
  exchange_.sender.open(queue);
  set_waker(queue.ring, queue.poster_may_work() ? static_cast<Waker*>(this) : &sending_waker_);
}

void NetworkEngine::close_queue(CarriedQueue& queue) {
  const auto lock = turns_.lock();
  set_waker(queue.ring, nullptr);
  exchange_.sender.close(queue);
}

template <class Work>
bool NetworkEngine::try_work(Work some) noexcept {
  const auto safely = [&] {
    try {
      return some();
    } catch (const std::exception& error) {  // no memory could be allocated
      exchange_.peers.failed(error.what());
      return true;
    }
  };
  return turns_.try_work(safely, [this] { ring(); });
}

void NetworkEngine::ring() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));
}

void NetworkEngine::wake() noexcept {
  turns_.announce();
  if (works_alone()) return ring();
  bool has_left_work = false;
  static_cast<void>(try_work([&] {
    const bool any = exchange_.sender.send_posted();
    if (!any) exchange_.peers.ask();  // nothing was posted: a caller waits for earlier commands
    has_left_work = look_for_answer() || has_left_work;
    return any;
  }));
  if (has_left_work) ring_if_asleep();
}

/// If another thread works now, or commands are left: either this sees that the engine's thread sleeps, or that thread
/// sees the commands before it sleeps. While it rests because waiting threads work, they send the commands.
void NetworkEngine::send_or_wake_thread() noexcept {
  turns_.announce();
  bool is_sent = false;
  if (!works_alone())
    static_cast<void>(try_work([&] { return is_sent = exchange_.sender.send_posted_without_locks(); }));
  if (is_sent) return;
  const Rest now = resting_.load();
  if (now == Rest::asleep || (now == Rest::helped && !helpers_.has_worked(machine::clock_ns()))) ring();
}

bool NetworkEngine::look_for_answer() {
  const RemotePeer* const asked = exchange_.sender.asked();
  bool has_left_work = false;
  if (asked == nullptr) return has_left_work;
  const std::uint64_t start = machine::clock_ns();
  helpers_.count(start);  // the engine's thread would only contend for the core
  for (unsigned idle = 0; asked->unanswered != 0 && machine::clock_ns() - start < answer_spin_ns;) {
    const bool had_work = exchange_.turn(polls_per_turn);
    has_left_work = had_work && exchange_.has_left_work();
    if (!had_work && ++idle % idle_turns_per_yield == 0) ::sched_yield();
  }
  return has_left_work;
}

/// Called by a thread that leaves work and may not come back for a long time. The engine's thread, which sleeps,
/// wakes for messages that arrive, not for work that is there already.
void NetworkEngine::ring_if_asleep() noexcept {
  if (resting_.load() == Rest::asleep) ring();
}

bool NetworkEngine::work() noexcept {
  const std::uint64_t now = machine::clock_ns();
  helpers_.count(now);
  const unsigned polls = now - worked_at_.load(std::memory_order_relaxed) < likely_work_ns ? polls_per_turn : 1;
  bool has_left_work = false;
  const bool any = try_work([&] {
    const bool had_work = exchange_.turn(polls);
    if (had_work) worked_at_.store(now, std::memory_order_relaxed);
    has_left_work = (had_work || has_left_work) && exchange_.has_left_work();
    return had_work;
  });
  if (has_left_work) ring_if_asleep();
  return any;
}

void NetworkEngine::run() {
  try {
    if (client_.device.is_gpu()) use_gpu(client_.device.index);  // CUDA gives other threads a context on GPU 0
    std::uint64_t idle_since = 0, reported_at = 0;
    while (!closing_) {
      const std::uint64_t now = machine::clock_ns();
      if (now - reported_at >= report_period_ns) {
        reported_at = now;
        if (report_failures()) continue;
      }
      if (rest_while_helped(now)) continue;
      if (try_work([this] { return exchange_.turn(); })) {
        idle_since = 0;
        continue;
      }
      if (idle_since == 0) idle_since = now;
      if (now - idle_since < spin_ns_)
        ::sched_yield();
      else if (!report_failures())
        sleep();
    }
  } catch (const std::exception& error) {
    client_.fail(error.what());
  }
}

bool NetworkEngine::rest_while_helped(std::uint64_t now) {
  const std::uint64_t ns = helpers_.rest_ns(now);
  if (ns == 0) return false;
  resting_ = Rest::helped;
  const bool is_rung = rest(ns, false);
  resting_ = Rest::none;
  return !is_rung;
}

void NetworkEngine::sleep() {
  resting_ = Rest::asleep;
  if (turns_.may_sleep([this] { return exchange_.arm(); }))
    rest(static_cast<std::uint64_t>(longest_sleep_us_) * 1'000, true);
  else
    ::sched_yield();  // a thread that has the lock, or brings work, may need this core
  resting_ = Rest::none;
}

bool NetworkEngine::rest(std::uint64_t ns, bool heeds_network) {
  const timespec longest{0, static_cast<long>(ns)};
  ::ppoll(pollset_.data(), heeds_network ? pollset_.size() : 1, &longest, nullptr);
  const bool is_rung = pollset_[0].revents != 0;
  std::uint64_t rung = 0;
  if (is_rung) static_cast<void>(!::read(bell_.get(), &rung, sizeof rung));
  return is_rung;
}

bool NetworkEngine::report_failures() {
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
  if (!failure.empty()) client_.fail(failure);
  return any || !aborts.empty() || !lost.empty() || !failure.empty();
}

bool NetworkEngine::is_abort_seen() {
  if (std::exchange(world_abort_.word, reported_aborts_[0]) != reported_aborts_[0])
    world_abort_.stage = WorldAbort::unseen;
  if (world_abort_.word != 0 && world_abort_.stage == WorldAbort::unseen && events_.kernels_see_abort())
    world_abort_.stage = WorldAbort::seen;
  return world_abort_.stage == WorldAbort::seen;
}

/// A rank that gives up stores an abort word; this function alone sends the word to other nodes.
bool NetworkEngine::send_aborts() {
  bool any = false;
  for (std::uint32_t team = 0; team < max_teams; ++team) {
    auto& word = client_.context.host_abort_words[team];
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

// --- Calls after a failure ---

template <class IsOver>
void NetworkEngine::work_until(const std::vector<int>& peers, const Ending& ending, IsOver is_over) {
  std::vector<Waited> waited(peers.size());
  for (std::uint64_t said = machine::clock_ns();; ::sched_yield()) {
    const auto lock = turns_.lock();
    if (!works_alone()) static_cast<void>(exchange_.turn());
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
            fmt::format("rank {} has not completed {} yet: {}", peers[i], ending.what, missing_from(peers[i])),
            plan_.rank);
      }
    }
    if (is_all) return;
  }
}

std::string NetworkEngine::missing_from(int peer) const {
  const RemotePeer& to = peer_of(peer);
  return fmt::format("{} of {} messages there were complete, {} answers were missing{}", to.acknowledged, to.sent,
                     to.unanswered, exchange_.sender.has_posted() ? ", and commands were not sent" : "");
}

void NetworkEngine::give_up(int peer, const Ending& ending) {
  const std::string reason = fmt::format("it takes nothing from this rank, which ends {}: for {} s {}", ending.what,
                                         static_cast<double>(ending.limit_ns) / 1e9, missing_from(peer));
  log(LogLevel::warning, fmt::format("rank {} is given up: {}", peer, reason), plan_.rank);
  exchange_.give_up(peer, reason);
}

void NetworkEngine::end_sources(const std::vector<int>& peers) {
  work_until(peers, {"what it has sent there after an abort", stuck_ns, true},
             [this](int peer) { return !exchange_.sender.reads_sources_for(peer); });
}

std::vector<int> NetworkEngine::settle(const std::vector<int>& left, std::int64_t deadline_ns) {
  const std::lock_guard reporting(report_mutex_);
  static_cast<void>(send_aborts());  // sent later, an abort word could abort the world that continues
  {
    const auto lock = turns_.lock();
    exchange_.peers.forget_failures();
    for (int peer = 0; peer < static_cast<int>(plan_.node_of.size()); ++peer)
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

void NetworkEngine::forget_failures() {
  const std::lock_guard reporting(report_mutex_);
  const auto lock = turns_.lock();
  exchange_.peers.forget_failures();
  exchange_.peers.note_abort(false);
  world_abort_.stage = WorldAbort::over;  // its word is cleared later
  static_cast<void>(exchange_.peers.take_lost(~std::uint64_t{0}));
}

}  // namespace

std::unique_ptr<Engine> make_network_engine(std::unique_ptr<RemoteExchange> exchange, FailureEvents events) {
  return std::make_unique<NetworkEngine>(std::move(exchange), std::move(events));
}

}  // namespace beeline
