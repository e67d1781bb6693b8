// SPDX-License-Identifier: Apache-2.0
// Who works: the thread that posts sends what it has posted, threads that wait do what comes, and where there are none,
// the engine's own thread, asleep until the network has something.
#include "network/network_engine.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/wait_policy.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/network/network.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "memory/agreement.hpp"
#include "network/far_exchange.hpp"
#include "network/introduction.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

namespace {

/// The engine's thread looks for work so long before it sleeps.
constexpr std::uint64_t patience_ns = 50'000;
/// Its sleep between two looks while threads that wait do the work.
constexpr int helped_us = 200;
/// The longest sleep: then it looks at the abort words, which wake nobody.
constexpr int longest_sleep_us = 10'000;
/// From the loss of a connection until it is told: who knows more about the rank's end may say so first.
constexpr std::uint64_t news_ns = 1'000'000'000;

class NetworkEngine final : public Engine, Waker, detail::WaitWork {
 public:
  NetworkEngine(const NetworkPlan& plan, NetworkNews news)
      : plan_(plan), news_(std::move(news)), exchange_(plan), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    require(static_cast<bool>(bell_), Status::no_resource, "no eventfd for the network's engine");
  }
  ~NetworkEngine() override;

  [[nodiscard]] std::vector<std::byte> address() const { return exchange_.address(); }
  void connect(const std::vector<std::span<const std::byte>>& addresses);

  [[nodiscard]] PeerRoute route_to(int peer) const override;
  void serve(const EngineClient& client) override;

 private:
  void wake() noexcept override;  // Waker
  void work() noexcept override;  // WaitWork
  [[nodiscard]] bool is_posted() const;
  /// Does some work, unless another thread does; then that one looks again.
  template <class Work>
  bool try_work(Work some);
  void run();
  void sleep();
  void rest(int us, bool heeds_network);
  void tell_news();
  void tell_aborts();

  const NetworkPlan plan_;
  const NetworkNews news_;
  FarExchange exchange_;  ///< of who holds the mutex
  std::mutex mutex_;
  EngineClient client_;
  FileDescriptor bell_;
  std::atomic<bool> posted_{false};       ///< whoever holds the mutex looks at the rings once more
  std::atomic<std::uint64_t> helped_{0};  ///< rounds of other threads
  std::atomic<bool> closing_{false};
  std::array<std::uint64_t, max_teams> told_aborts_{};  ///< abort words that the other nodes know
  std::thread thread_;
};

NetworkEngine::~NetworkEngine() {
  if (!thread_.joinable()) return;
  detail::remove_wait_work(*this);
  closing_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));
  thread_.join();
  for (CommandRing* ring : client_.rings)
    detail::SystemAtomic<std::uint64_t>(ring->asleep.value).store(0, cuda::memory_order_release);
}

void NetworkEngine::connect(const std::vector<std::span<const std::byte>>& addresses) {
  const detail::Deadline deadline(plan_.deadline_ns);
  exchange_.connect(addresses);
  for (std::vector<int> silent = exchange_.silent(); !silent.empty(); silent = exchange_.silent()) {
    if (!exchange_.turn()) ::sched_yield();
    for (const auto& [peer, reason] : exchange_.take_lost(~std::uint64_t{0}))
      throw Error(Status::unreachable,
                  fmt::format("rank {} is not reached over UCX {}: {}", peer, ucx().version, reason), plan_.rank);
    if (deadline.passed())
      throw Error(Status::deadline,
                  fmt::format("nothing has come over UCX {} from {} within {} s: a firewall, or networks that are not "
                              "connected (UCX_NET_DEVICES chooses among several)",
                              ucx().version, detail::rank_list(silent), deadline.total_seconds()),
                  plan_.rank);
  }
}

PeerRoute NetworkEngine::route_to(int peer) const {
  const auto node = [this](int rank) { return plan_.node_of[static_cast<std::size_t>(rank)]; };
  if (node(peer) == node(plan_.rank)) return {};
  return {Way::engine, fmt::format("rank {} is on node {}, rank {} on node {}: UCX {} carries operations", peer,
                                   node(peer), plan_.rank, node(plan_.rank), ucx().version)};
}

void NetworkEngine::serve(const EngineClient& client) {
  client_ = client;
  exchange_.serve(client_);
  for (CommandRing* ring : client_.rings)
    detail::SystemAtomic<std::uint64_t>(ring->asleep.value)
        .store(reinterpret_cast<std::uintptr_t>(static_cast<Waker*>(this)), cuda::memory_order_release);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(Status::no_resource, fmt::format("the network's engine: {}", error.what()));
  }
  detail::add_wait_work(*this);
}

template <class Work>
bool NetworkEngine::try_work(Work some) {
  bool any = false;
  do {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return any;
    posted_.store(false);
    any = some() || any;
    // The lock goes before `posted_` is looked at: a poster either gets it, or is seen here.
  } while (is_posted());
  return any;
}

bool NetworkEngine::is_posted() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return posted_.load(std::memory_order_relaxed);
}

void NetworkEngine::wake() noexcept {
  posted_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  static_cast<void>(try_work([this] { return exchange_.send_posted(); }));
}

void NetworkEngine::work() noexcept {
  static_cast<void>(try_work([this] { return exchange_.turn(); }));
  helped_.fetch_add(1, std::memory_order_relaxed);
}

void NetworkEngine::run() {
  try {
    std::uint64_t idle_since = 0, helped = 0;
    while (!closing_) {
      const bool any = try_work([this] { return exchange_.turn(); });
      if (any) {
        idle_since = 0;
        continue;
      }
      tell_news();
      if (const std::uint64_t now_helped = helped_.load(std::memory_order_relaxed); now_helped != helped) {
        helped = now_helped;
        rest(helped_us, false);
        continue;
      }
      const std::uint64_t now = machine::clock_ns();
      if (idle_since == 0) idle_since = now;
      if (now - idle_since < patience_ns)
        ::sched_yield();
      else
        sleep();
    }
  } catch (const std::exception& error) {
    client_.fail(error.what());
  }
}

void NetworkEngine::sleep() {
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || exchange_.has_posted() || !exchange_.arm()) return;
  }
  rest(longest_sleep_us, true);
}

void NetworkEngine::rest(int us, bool heeds_network) {
  std::array<pollfd, 2> set = {{{bell_.get(), POLLIN, 0}, {exchange_.descriptor(), POLLIN, 0}}};
  const timespec longest{0, long{us} * 1'000};
  ::ppoll(set.data(), heeds_network ? 2 : 1, &longest, nullptr);
}

void NetworkEngine::tell_news() {
  tell_aborts();
  std::string failure;
  std::vector<FarAbort> aborts;
  std::vector<std::pair<int, std::string>> lost;
  {
    const std::lock_guard lock(mutex_);
    if (told_aborts_[0] != 0) exchange_.end_lost_answers();
    failure = exchange_.take_failure();
    aborts = exchange_.take_aborts();
    const std::uint64_t now = machine::clock_ns();
    lost = exchange_.take_lost(now - std::min(now, news_ns));
  }
  for (const FarAbort& each : aborts) {
    told_aborts_[each.team] = each.word;
    news_.aborted(each.team, each.word, each.cause);
  }
  for (const auto& [peer, reason] : lost) news_.lost(peer, reason);
  if (!failure.empty()) client_.fail(failure);
}

/// Abort words are stored by whoever gives up; nothing carries them to other nodes but this.
void NetworkEngine::tell_aborts() {
  for (std::uint32_t team = 0; team < max_teams; ++team) {
    auto& word = client_.context.host_abort_words[team];
    const std::uint64_t raised = detail::SystemAtomic<std::uint64_t>(word).load(cuda::memory_order_acquire);
    if (std::exchange(told_aborts_[team], raised) == raised || raised == 0) continue;
    const FarAbort abort{team, raised, news_.cause(team)};
    const std::vector<int> members = news_.far_members(team);
    const std::lock_guard lock(mutex_);
    for (const int member : members) exchange_.send_abort(member, abort);
  }
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

std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, const NetworkPlan& plan, NetworkNews news) {
  std::unique_ptr<NetworkEngine> engine;
  const Problem problem = problem_of([&] { engine = std::make_unique<NetworkEngine>(plan, std::move(news)); });
  fail_together(bootstrap, problem, plan.deadline_ns);
  const auto all = bootstrap.allgather(introduction(engine->address()), plan.deadline_ns);
  std::vector<std::span<const std::byte>> addresses;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    addresses.push_back(address_in(static_cast<int>(rank), all[rank]));
  engine->connect(addresses);
  return engine;
}

}  // namespace beeline
