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
#include <atomic>
#include <mutex>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/wait_policy.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "core/long_wait.hpp"
#include "core/thread.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"
#include "transports/network_failures.hpp"
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
/// Polls of the network in a turn for which something is likely to arrive soon: a poll takes a fraction of a turn. A
/// short wait does fewer, since it may be for something else, which it does not see meanwhile.
constexpr unsigned most_polls = 16, polls_in_short_waits = 4;
/// A yield delays what arrives meanwhile. Where ranks share cores, so that waits yield after so few polls, a thread
/// yields after each turn.
constexpr unsigned idle_turns_per_yield = 4, few_polls = 4;
/// Time after a waiting thread's work within which more work is likely.
constexpr std::uint64_t likely_work_ns = 20'000;
/// As `network_spin_ns`, for the rank of a GPU, which cannot wake the engine's thread.
constexpr std::uint64_t gpu_spin_ns = 200'000;
/// Longest sleep of the engine's thread. It then reads the abort words, because storing one wakes no thread.
constexpr int longest_sleep_us = 10'000;
/// Time between two looks for failures while the engine's thread is awake.
constexpr std::uint64_t report_period_ns = 1'000'000;

class NetworkEngine final : public Engine, Waker, detail::WaitWork, UnmapWatcher {
 public:
  NetworkEngine(std::unique_ptr<RemoteExchange> exchange, FailureEvents events)
      : connected_(std::move(exchange)), exchange_(*connected_), plan_(exchange_.peers.plan()),
        failures_(exchange_, turns_, std::move(events)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    require(static_cast<bool>(bell_), Status::no_resource, "no eventfd for the network's engine");
    pollset_.push_back({bell_.get(), POLLIN, 0});
    for (const auto& worker : exchange_.workers) pollset_.push_back({worker->descriptor(), POLLIN, 0});
  }
  ~NetworkEngine() override;

  [[nodiscard]] PeerRoute route_to(int peer) const override;
  void serve(const EngineClient& client) override;
  void open_queue(CarriedQueue& queue) override;
  void close_queue(CarriedQueue& queue) override;
  void end_sources(const std::vector<int>& peers) override { failures_.end_sources(peers); }
  [[nodiscard]] std::vector<int> settle(const std::vector<int>& left, std::int64_t deadline_ns) override {
    return failures_.settle(left, deadline_ns);
  }
  void forget_failures() override { failures_.forget(); }
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
  void ring() noexcept;
  void ring_if_asleep() noexcept;
  void run();
  void sleep();
  /// Sleeps while waiting threads do the work. Returns whether they do, and nothing rang meanwhile.
  bool rest_while_helped(std::uint64_t now);
  /// Returns whether the bell was rung.
  bool rest(std::uint64_t ns, bool heeds_network);
  /// Whether this engine's thread does all the work.
  [[nodiscard]] bool works_alone() const { return plan_.stages(); }

  const std::unique_ptr<RemoteExchange> connected_;
  RemoteExchange& exchange_;  ///< used by the thread whose turn it is
  const NetworkPlan& plan_;
  std::uint64_t spin_ns_ = network_spin_ns;
  int longest_sleep_us_ = longest_sleep_us;
  unsigned idle_turns_ = idle_turns_per_yield;
  mutable WorkTurns turns_;
  NetworkFailures failures_;
  SendingWaker sending_waker_{*this};
  EngineClient client_;
  FileDescriptor bell_;
  std::vector<pollfd> pollset_;  ///< descriptors of `bell_` and of the workers
  WaitingHelpers helpers_;
  enum class Rest { none, helped, asleep };
  std::atomic<Rest> resting_{Rest::none};    ///< what the engine's thread does
  std::atomic<std::uint64_t> worked_at_{0};  ///< time at which a waiting thread last had work
  std::atomic<bool> closing_{false};
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
  return {PeerAccess::engine, fmt::format("rank {} is on node {}, rank {} on node {}: {} carries operations{}", peer,
                                          node(peer), plan_.rank, node(plan_.rank),
                                          exchange_.peers[static_cast<std::uint32_t>(peer)].transport->label(),
                                          exchange_.keys.uses_of(peer))};
}

void NetworkEngine::serve(const EngineClient& client) {
  client_ = client;
  if (client_.device.is_gpu()) {
    spin_ns_ = plan_.poll_us == 0 ? ~std::uint64_t{0} : gpu_spin_ns;
    longest_sleep_us_ = std::min(longest_sleep_us, plan_.poll_us);
  }
  if (client_.context.polling.gives_core_away(few_polls)) idle_turns_ = 1;
  exchange_.serve(client_);
  failures_.serve(client_);
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
    const bool had_work = exchange_.turn(most_polls, &turns_.announced());
    has_left_work = had_work && exchange_.has_left_work();
    if (!had_work && ++idle % idle_turns_ == 0) ::sched_yield();
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
  const bool is_likely = now - worked_at_.load(std::memory_order_relaxed) < likely_work_ns;
  const unsigned polls = !is_likely ? 1 : detail::is_in_long_wait() ? most_polls : polls_in_short_waits;
  bool has_left_work = false;
  const bool any = try_work([&] {
    const bool had_work = exchange_.turn(polls, &turns_.announced());
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
        if (failures_.report()) continue;
      }
      if (rest_while_helped(now)) continue;
      if (try_work([this] { return exchange_.turn(); })) {
        idle_since = 0;
        continue;
      }
      if (idle_since == 0) idle_since = now;
      if (now - idle_since < spin_ns_)
        ::sched_yield();
      else if (!failures_.report())
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

}  // namespace

std::unique_ptr<Engine> make_network_engine(std::unique_ptr<RemoteExchange> exchange, FailureEvents events) {
  return std::make_unique<NetworkEngine>(std::move(exchange), std::move(events));
}

}  // namespace beeline
