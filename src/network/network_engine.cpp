// SPDX-License-Identifier: Apache-2.0
// Who works: the thread that posts sends what it has posted, threads that wait do what comes, and where there are none,
// the engine's own thread, asleep until the network has something. Where the rank's device copies, that thread alone.
#include "network/network_engine.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/wait_policy.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/network/network.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "core/thread.hpp"
#include "memory/agreement.hpp"
#include "network/far_exchange.hpp"
#include "network/introduction.hpp"
#include "network/network_devices.hpp"
#include "network/turns.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

namespace {

/// The engine's thread looks for work so long before it sleeps.
constexpr std::uint64_t network_patience_ns = 50'000;
/// The same beside a GPU, which cannot wake it.
constexpr std::uint64_t gpu_patience_ns = 200'000;
/// Its sleep between two looks while threads that wait do the work.
constexpr int helped_us = 200;
/// The longest sleep: then it looks at the abort words, which wake nobody.
constexpr int longest_sleep_us = 10'000;
/// From the loss of a connection until it is told: who knows more about the rank's end may say so first.
constexpr std::uint64_t lost_ns = 1'000'000'000;
/// Between two looks for news while there is traffic.
constexpr std::uint64_t news_period_ns = 1'000'000;
/// After a failure, a rank that takes nothing for so long is given up.
constexpr std::uint64_t stuck_ns = 1'000'000'000;

class NetworkEngine final : public Engine, Waker, detail::WaitWork, UnmapWatcher {
 public:
  NetworkEngine(const NetworkPlan& plan, NetworkNews news)
      : plan_(plan), news_(std::move(news)), exchange_(plan), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    require(static_cast<bool>(bell_), Status::no_resource, "no eventfd for the network's engine");
  }
  ~NetworkEngine() override;

  [[nodiscard]] std::vector<std::byte> address() const { return exchange_.address(); }
  ///   addresses  [ranks] of UCX
  ///   devices    [ranks] by which it goes, for errors
  void connect(const std::vector<std::span<const std::byte>>& addresses, const std::vector<std::string>& devices);

  [[nodiscard]] PeerRoute route_to(int peer) const override;
  void serve(const EngineClient& client) override;
  void open_queue(CarriedQueue& queue) override;
  void close_queue(CarriedQueue& queue) override;
  void end_sources(const std::vector<int>& peers) override;
  [[nodiscard]] std::vector<int> settle(const std::vector<int>& left) override;
  void forget_failures() override;
  [[nodiscard]] NetworkStatistics network_statistics() const override {
    const auto lock = turns_.lock();
    return exchange_.statistics();
  }

 private:
  // UnmapWatcher
  void before_unmap(const std::byte* start, std::int64_t deadline_ns) override;
  void after_unmap(const std::byte* start) noexcept override;
  /// Whom those wake who post to a ring.
  void set_waker(CommandRing& ring, Waker* waker);
  void wake() noexcept override;  // Waker
  bool work() noexcept override;  // WaitWork
  /// Does some work, unless another thread does; then that one looks again.
  template <class Work>
  bool try_work(Work some) noexcept;
  /// Works until `is_over(peer)`, or gives the peer up where it does not get on.
  template <class IsOver>
  void work_until(int peer, const char* what, IsOver is_over);
  void ring() noexcept;
  void run();
  void sleep();
  void rest(int us, bool heeds_network);
  /// Whether other threads leave all work to this engine's own.
  [[nodiscard]] bool works_alone() const { return plan_.is_staged[static_cast<std::size_t>(plan_.rank)]; }
  /// Whether there was any.
  bool tell_news();
  bool tell_aborts();

  const NetworkPlan plan_;
  const NetworkNews news_;
  std::uint64_t patience_ns_ = network_patience_ns;
  int longest_sleep_us_ = longest_sleep_us;
  FarExchange exchange_;  ///< of the thread that works
  mutable WorkTurns turns_;
  std::mutex news_mutex_;  ///< while news are told
  EngineClient client_;
  FileDescriptor bell_;
  std::atomic<std::uint64_t> helped_{0};  ///< rounds of other threads
  std::atomic<bool> closing_{false};
  std::array<std::uint64_t, max_teams> told_aborts_{};  ///< abort words that the other nodes know
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
  const NetworkStatistics puts = exchange_.statistics();
  if (puts.key_hits + puts.key_misses + puts.key_overlaps != 0)
    log(LogLevel::info,
        fmt::format("{} long puts went by memory keys; in messages {} that had none, and {} that overlap others",
                    puts.key_hits, puts.key_misses, puts.key_overlaps),
        plan_.rank);
}

void NetworkEngine::set_waker(CommandRing& ring, Waker* waker) {
  detail::SystemAtomic<std::uint64_t>(ring.asleep.value)
      .store(reinterpret_cast<std::uintptr_t>(waker), std::memory_order_release);
}

void NetworkEngine::connect(const std::vector<std::span<const std::byte>>& addresses,
                            const std::vector<std::string>& devices) {
  const detail::Deadline deadline(plan_.deadline_ns);
  const auto devices_to = [&](int peer) {
    return fmt::format("rank {} uses {}, rank {} {}: UCX_NET_DEVICES chooses others", plan_.rank,
                       devices[static_cast<std::size_t>(plan_.rank)], peer, devices[static_cast<std::size_t>(peer)]);
  };
  exchange_.connect(addresses, devices_to);
  for (;;) {
    const bool is_late = deadline.passed();  // read first: what came before the end counts
    if (!exchange_.turn()) ::sched_yield();
    const std::vector<int> silent = exchange_.silent();
    if (silent.empty()) break;
    for (const auto& [peer, reason] : exchange_.take_lost(~std::uint64_t{0}))
      throw Error(
          Status::unreachable,
          fmt::format("rank {} is not reached over UCX {}: {}; {}", peer, ucx().version, reason, devices_to(peer)),
          plan_.rank);
    if (is_late)
      throw Error(
          Status::deadline,
          fmt::format("nothing has come over UCX {} from {} within {} s: a firewall, or networks that are not "
                      "connected; {}",
                      ucx().version, detail::rank_list(silent), deadline.total_seconds(), devices_to(silent.front())),
          plan_.rank);
  }
  for (int peer = 0; peer < static_cast<int>(plan_.node_of.size()); ++peer)
    if (exchange_.is_far(peer)) exchange_.choose_keys(peer);
}

PeerRoute NetworkEngine::route_to(int peer) const {
  const auto node = [this](int rank) { return plan_.node_of[static_cast<std::size_t>(rank)]; };
  if (node(peer) == node(plan_.rank)) return {};
  return {PeerAccess::engine,
          fmt::format("rank {} is on node {}, rank {} on node {}: UCX {} carries operations{}", peer, node(peer),
                      plan_.rank, node(plan_.rank), ucx().version, exchange_.way_of_puts_to(peer))};
}

void NetworkEngine::serve(const EngineClient& client) {
  client_ = client;
  if (client_.device.is_gpu()) {
    patience_ns_ = plan_.poll_us == 0 ? ~std::uint64_t{0} : gpu_patience_ns;
    longest_sleep_us_ = std::min(longest_sleep_us, plan_.poll_us);
  }
  exchange_.serve(client_);
  for (CommandRing* ring : client_.rings) set_waker(*ring, this);
  thread_ = detail::start_thread_for("the network's engine", [this] { run(); });
  if (!works_alone()) detail::add_wait_work(*this);
  client_.memory_users->watch(*this);
}

/// Messages are done meanwhile: to those before the one that gives a key back, too.
void NetworkEngine::before_unmap(const std::byte* start, std::int64_t deadline_ns) {
  {
    const auto lock = turns_.lock();
    if (!exchange_.end_keys(start)) return;
  }
  for (const detail::Deadline deadline(deadline_ns);;) {
    {
      const auto lock = turns_.lock();
      const bool is_late = deadline.passed();
      static_cast<void>(exchange_.turn());
      const std::vector<int> holders = exchange_.holders_of(start);
      if (holders.empty()) return exchange_.unregister(start);
      if (is_late)
        throw Error(Status::deadline,
                    fmt::format("memory is not unmapped: {} puts to it by a key, and has not given the key back for "
                                "{} s",
                                detail::rank_list(holders), deadline.total_seconds()),
                    plan_.rank);
    }
    ::sched_yield();
  }
}

void NetworkEngine::after_unmap(const std::byte* start) noexcept {
  const auto lock = turns_.lock();
  exchange_.forget_keys(start);
}

void NetworkEngine::open_queue(CarriedQueue& queue) {
  const auto lock = turns_.lock();
  exchange_.open_queue(queue);
  set_waker(queue.ring, this);
}

void NetworkEngine::close_queue(CarriedQueue& queue) {
  const auto lock = turns_.lock();
  set_waker(queue.ring, nullptr);
  exchange_.close_queue(queue);
}

template <class Work>
bool NetworkEngine::try_work(Work some) noexcept {
  const auto safely = [&] {
    try {
      return some();
    } catch (const std::exception& error) {  // memory that is not to be had
      exchange_.failed(error.what());
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
  static_cast<void>(try_work([this] {
    const bool any = exchange_.send_posted();
    if (!any) exchange_.ask();  // nothing has been posted: somebody waits for what was
    return any;
  }));
}

bool NetworkEngine::work() noexcept {
  helped_.fetch_add(1, std::memory_order_relaxed);
  return try_work([this] { return exchange_.turn(); });
}

void NetworkEngine::run() {
  try {
    if (exchange_.gives_ucx_gpu_memory()) use_gpu(client_.device.index);  // UCX copies in this thread
    std::uint64_t idle_since = 0, helped = 0, told_at = 0;
    while (!closing_) {
      const bool any = try_work([this] { return exchange_.turn(); });
      const std::uint64_t now = machine::clock_ns();
      // Traffic without an end does not keep news back.
      if (!any || now - told_at >= news_period_ns) {
        told_at = now;
        if (tell_news()) continue;
      }
      if (any) {
        idle_since = 0;
        continue;
      }
      if (const std::uint64_t now_helped = helped_.load(std::memory_order_relaxed); now_helped != helped) {
        helped = now_helped;
        rest(helped_us, false);
        continue;
      }
      if (idle_since == 0) idle_since = now;
      if (now - idle_since < patience_ns_)
        ::sched_yield();
      else
        sleep();
    }
  } catch (const std::exception& error) {
    client_.fail(error.what());
  }
}

void NetworkEngine::sleep() {
  const auto prepare = [this] {
    exchange_.acknowledge_all();
    return !exchange_.has_posted() && exchange_.arm();
  };
  if (turns_.may_sleep(prepare)) rest(longest_sleep_us_, true);
}

void NetworkEngine::rest(int us, bool heeds_network) {
  std::array<pollfd, 2> set = {{{bell_.get(), POLLIN, 0}, {exchange_.descriptor(), POLLIN, 0}}};
  const timespec longest{0, long{us} * 1'000};
  ::ppoll(set.data(), heeds_network ? 2 : 1, &longest, nullptr);
  std::uint64_t rung = 0;
  if (set[0].revents != 0) static_cast<void>(!::read(bell_.get(), &rung, sizeof rung));
}

bool NetworkEngine::tell_news() {
  const std::lock_guard telling(news_mutex_);
  bool any = tell_aborts();
  std::string failure;
  std::vector<FarAbort> aborts;
  std::vector<std::pair<int, std::string>> lost;
  {
    const auto lock = turns_.lock();
    if (told_aborts_[0] != 0) exchange_.end_lost();
    failure = exchange_.take_failure();
    aborts = exchange_.take_aborts();
    const std::uint64_t now = machine::clock_ns();
    lost = exchange_.take_lost(now - std::min(now, lost_ns));
  }
  for (const FarAbort& each : aborts) {
    told_aborts_[each.team] = each.word;
    news_.aborted(each.team, each.word, each.cause);
  }
  for (const auto& [peer, reason] : lost) news_.lost(peer, reason);
  if (!failure.empty()) client_.fail(failure);
  return any || !aborts.empty() || !lost.empty() || !failure.empty();
}

/// Abort words are stored by whoever gives up; nothing carries them to other nodes but this.
bool NetworkEngine::tell_aborts() {
  bool any = false;
  for (std::uint32_t team = 0; team < max_teams; ++team) {
    auto& word = client_.context.host_abort_words[team];
    const std::uint64_t raised = detail::SystemAtomic<std::uint64_t>(word).load(std::memory_order_acquire);
    if (std::exchange(told_aborts_[team], raised) == raised || raised == 0) continue;
    any = true;
    const FarAbort abort{team, raised, news_.cause(team)};
    const std::vector<int> members = news_.members_to_tell(team);
    const auto lock = turns_.lock();
    for (const int member : members) exchange_.send_abort(member, abort);
  }
  return any;
}

// After failures.

template <class IsOver>
void NetworkEngine::work_until(int peer, const char* what, IsOver is_over) {
  std::uint64_t seen = 0, since = machine::clock_ns();
  for (;;) {
    {
      const auto lock = turns_.lock();
      if (!exchange_.is_far(peer) || is_over()) return;
      if (!works_alone()) static_cast<void>(exchange_.turn());
      const std::uint64_t progress = exchange_.progress_of(peer), now = machine::clock_ns();
      if (std::exchange(seen, progress) != progress) since = now;
      if (now - since >= stuck_ns)
        return exchange_.give_up(peer, fmt::format("it takes nothing from this rank, which ends {}", what));
    }
    ::sched_yield();
  }
}

void NetworkEngine::end_sources(const std::vector<int>& peers) {
  for (const int peer : peers)
    work_until(peer, "what it has sent there after an abort", [&] { return !exchange_.reads_sources_for(peer); });
}

std::vector<int> NetworkEngine::settle(const std::vector<int>& left) {
  const std::lock_guard telling(news_mutex_);
  static_cast<void>(tell_aborts());  // what is sent later could abort the world that goes on
  {
    const auto lock = turns_.lock();
    exchange_.forget_failures();
    for (int peer = 0; peer < static_cast<int>(plan_.node_of.size()); ++peer)
      if (exchange_.is_far(peer) && std::find(left.begin(), left.end(), peer) == left.end())
        exchange_.give_up(peer, "it has ended");
    exchange_.end_lost();
  }
  for (std::vector<int> lost;;) {
    const std::size_t before = lost.size();
    lost.clear();
    for (const int peer : left) {
      work_until(peer, "an abort", [&] { return exchange_.is_settled(peer); });
      const auto lock = turns_.lock();
      if (exchange_.is_far(peer) && exchange_.is_lost(peer)) lost.push_back(peer);
      exchange_.end_lost();
    }
    if (lost.size() == before) return lost;  // what waited in the rings behind commands to one of them has gone, too
  }
}

void NetworkEngine::forget_failures() {
  const std::lock_guard telling(news_mutex_);
  const auto lock = turns_.lock();
  exchange_.forget_failures();
  static_cast<void>(exchange_.take_lost(~std::uint64_t{0}));
}

}  // namespace

std::string no_network_reason() {
  try {
    static_cast<void>(ucx());
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

namespace {

using Introductions = std::vector<std::vector<std::byte>>;

std::vector<std::span<const std::byte>> contents_of(const Introductions& all) {
  std::vector<std::span<const std::byte>> contents;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    contents.push_back(content_of(static_cast<int>(rank), all[rank]));
  return contents;
}

/// Chooses UCX's devices. What the ranks of one host send each other does not leave it; those for RDMA are left to UCX.
///   networks  [ranks]
void choose_devices(NetworkPlan& plan, std::span<const HostNetwork> networks) {
  if (std::ranges::all_of(plan.host_of, [&](int host) { return host == plan.host_of.front(); })) {
    plan.net_devices = plan.devices = "lo";
    return;
  }
  plan.devices = "what UCX chooses";
  if (!plan.is_tcp_alone) return;
  const std::vector<NetworkDevice> chosen = choose_devices(networks, plan.host_of, plan.rank, address_towards);
  for (const NetworkDevice& device : chosen) plan.net_devices += (plan.net_devices.empty() ? "" : ",") + device.name;
  if (!chosen.empty()) plan.devices = text_of(chosen);
  plan.prefers_ipv6 = std::ranges::any_of(networks, [](const HostNetwork& each) {
    return each.meeting_address.find(':') != std::string::npos && each.meeting_address != "::1";
  });
}

/// Collective. Finds out what is between the hosts.
void explore(Bootstrap& bootstrap, NetworkPlan& plan) {
  std::error_code absent;
  const std::byte has_rdma{!std::filesystem::is_empty("/sys/class/infiniband", absent) && !absent};
  std::vector<std::byte> mine{has_rdma};
  const std::string network = encode(host_network(plan.meeting_point));
  std::ranges::copy(std::as_bytes(std::span(network)), std::back_inserter(mine));
  const Introductions all = bootstrap.allgather(introduction(mine), plan.deadline_ns);
  bool any_rdma = false;
  std::vector<HostNetwork> networks;
  for (const auto content : contents_of(all)) {
    any_rdma = any_rdma || content.front() != std::byte{0};
    const auto text = content.subspan(1);
    networks.push_back(decode_network({reinterpret_cast<const char*>(text.data()), text.size()}));
  }
  plan.is_tcp_alone = !any_rdma || plan.is_split;
  choose_devices(plan, networks);
}

/// The devices that errors name: the environment has the last word.
std::string used_devices(const NetworkPlan& plan) {
  const char* const chosen = std::getenv("UCX_NET_DEVICES");
  return chosen == nullptr ? plan.devices : fmt::format("UCX_NET_DEVICES={}", chosen);
}

/// A way to a rank takes up to two sockets, and UCX ends the process where there is none.
void allow_sockets(const NetworkPlan& plan) {
  const rlim_t wanted = 2 * plan.node_of.size() + 512;
  rlimit limit{};
  if (plan.node_of.size() <= max_node_ranks || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
    return;
  require(
      limit.rlim_max >= wanted, Status::no_resource,
      fmt::format("a process may open {} files here, and ways to {} ranks take up to {}: raise the limit (ulimit -n)",
                  limit.rlim_max, plan.node_of.size(), wanted));
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, NetworkPlan plan, NetworkNews news) {
  explore(bootstrap, plan);
  std::unique_ptr<NetworkEngine> engine;
  const Problem problem = problem_of([&] {
    allow_sockets(plan);
    engine = std::make_unique<NetworkEngine>(plan, std::move(news));
  });
  fail_together(bootstrap, problem, plan.deadline_ns);
  if (plan.rank == 0 && !ucx().unguarded.empty())
    log(LogLevel::warning,
        fmt::format("processes of other users of a rank's machine can write to its memory: {}", ucx().unguarded), 0);
  const std::string text = used_devices(plan);
  const auto named = std::as_bytes(std::span(text.c_str(), text.size() + 1));  // with its zero
  std::vector<std::byte> mine(named.begin(), named.end());
  std::ranges::copy(engine->address(), std::back_inserter(mine));
  const Introductions all = bootstrap.allgather(introduction(mine), plan.deadline_ns);
  std::vector<std::string> devices;
  std::vector<std::span<const std::byte>> addresses;
  for (const auto content : contents_of(all)) {
    devices.emplace_back(reinterpret_cast<const char*>(content.data()));
    addresses.push_back(content.subspan(devices.back().size() + 1));
  }
  engine->connect(addresses, devices);
  return engine;
}

}  // namespace beeline
