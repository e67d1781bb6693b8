// SPDX-License-Identifier: Apache-2.0
// Set-up of a rank's engine for other nodes: the transports that its host has, the transport that each pair of ranks
// uses, and greetings.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "memory/agreement.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rank_list.hpp"
#include "transports/introduction.hpp"
#include "transports/network_engine.hpp"
#include "transports/remote_exchange.hpp"

namespace beeline {

namespace {

/// Chooses the rank's devices that reach other hosts, and sets the facts about the network that transports need.
void choose_devices(NetworkPlan& plan, std::span<const HostNetwork> networks) {
  plan.is_one_host = std::ranges::all_of(plan.host_of, [&](int host) { return host == plan.host_of.front(); });
  if (plan.is_one_host) return;
  plan.devices = choose_devices(networks, plan.host_of, plan.rank, address_towards);
  plan.prefers_ipv6 = std::ranges::any_of(networks, [](const HostNetwork& each) {
    return each.meeting_address.find(':') != std::string::npos && each.meeting_address != "::1";
  });
}

/// Collective. Exchanges introductions. Returns their contents.
std::vector<std::vector<std::byte>> introduce(Bootstrap& bootstrap, const NetworkPlan& plan,
                                              std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> contents;
  for (const auto& each : bootstrap.allgather(introduction(mine), plan.deadline_ns)) {
    const auto content = content_of(static_cast<int>(contents.size()), each);
    contents.emplace_back(content.begin(), content.end());
  }
  return contents;
}

/// Collective. Finds out which networks connect the hosts.
void explore(Bootstrap& bootstrap, NetworkPlan& plan) {
  std::error_code absent;
  const std::byte has_rdma{!std::filesystem::is_empty("/sys/class/infiniband", absent) && !absent};
  std::vector<std::byte> mine{has_rdma};
  const std::string network = encode(host_network(plan.meeting_point));
  std::ranges::copy(std::as_bytes(std::span(network)), std::back_inserter(mine));
  bool any_rdma = false;
  std::vector<HostNetwork> networks;
  for (const auto& content : introduce(bootstrap, plan, mine)) {
    any_rdma = any_rdma || content.front() != std::byte{0};
    networks.push_back(decode_network(text_in(std::span(content).subspan(1))));
  }
  plan.is_tcp_alone = !any_rdma || plan.is_split;
  choose_devices(plan, networks);
}

/// A connection to a rank takes up to two sockets, and UCX ends the process if there are too few.
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

/// Opens this rank's transports. The `workers` of the exchange are in the same order.
std::vector<const TransportRow*> open_transports(const NetworkPlan& plan, RemoteExchange& exchange) {
  std::vector<const TransportRow*> opened;
  std::string why_first;
  for (const ChosenTransport& each : choose_transports(plan.transports, plan.is_secure)) {
    if (const std::string why = each.row->reason(); !why.empty()) {
      log(LogLevel::info, fmt::format("the transport {} is not used: {}", each.row->name, why), plan.rank);
      if (why_first.empty()) why_first = why;
      continue;
    }
    exchange.workers.push_back(each.row->open(plan, each.settings, exchange.receiver));
    opened.push_back(each.row);
  }
  if (opened.empty()) throw Error(Status::unavailable, why_first);
  return opened;
}

/// A rank's end of one transport, as published to the other ranks.
struct Offer {
  std::string name, devices;
  std::vector<std::byte> address;
};

std::vector<std::byte> encode_offers(const std::vector<Offer>& offers) {
  std::vector<std::byte> all;
  for (const Offer& each : offers) {
    const std::string head = fmt::format("{}\n{}\n{}\n", each.name, each.devices, each.address.size());
    std::ranges::copy(std::as_bytes(std::span(head)), std::back_inserter(all));
    all.insert(all.end(), each.address.begin(), each.address.end());
  }
  return all;
}

std::vector<Offer> decode_offers(std::span<const std::byte> all) {
  const auto take_line = [&all] {
    const auto end = std::find(all.begin(), all.end(), std::byte{'\n'});
    const std::string line = text_in({all.begin(), end});
    all = all.subspan(std::min(line.size() + 1, all.size()));
    return line;
  };
  std::vector<Offer> offers;
  while (!all.empty()) {
    Offer& offer = offers.emplace_back(Offer{take_line(), take_line(), {}});
    const std::size_t bytes = std::min<std::size_t>(std::stoul("0" + take_line()), all.size());
    offer.address.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes));
    all = all.subspan(bytes);
  }
  return offers;
}

std::string offer_names(const std::vector<Offer>& offers) {
  std::vector<std::string> names;
  for (const Offer& each : offers) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ","));
}

const Offer* find_offer(const std::vector<Offer>& offers, std::string_view name) {
  const auto found = std::ranges::find(offers, name, &Offer::name);
  return found == offers.end() ? nullptr : &*found;
}

/// The transport of a pair of ranks: both ends choose the same. Throws unreachable if they have none in common.
const std::string& transport_between(const std::vector<std::vector<Offer>>& offers, int a, int b) {
  const auto low = static_cast<std::size_t>(std::min(a, b)), high = static_cast<std::size_t>(std::max(a, b));
  for (const Offer& each : offers[low])
    if (find_offer(offers[high], each.name) != nullptr) return each.name;
  throw Error(Status::unreachable, fmt::format("ranks {} and {} have no transport in common: {} and {} "
                                               "(BEELINE_TRANSPORTS, or what their hosts lack)",
                                               low, high, offer_names(offers[low]), offer_names(offers[high])));
}

/// Fails on all ranks if a pair of ranks on different nodes has no transport in common.
void require_transports(const NetworkPlan& plan, const std::vector<std::vector<Offer>>& offers) {
  const auto same = [&](const auto& each) { return offer_names(each) == offer_names(offers.front()); };
  if (std::ranges::all_of(offers, same)) return;
  for (std::size_t a = 0; a < offers.size(); ++a)
    for (std::size_t b = a + 1; b < offers.size(); ++b)
      if (plan.node_of[a] != plan.node_of[b])
        static_cast<void>(transport_between(offers, static_cast<int>(a), static_cast<int>(b)));
}

/// Connects a rank with the ranks of other nodes.
class Connector {
 public:
  Connector(RemoteExchange& exchange, const std::vector<const TransportRow*>& opened,
            const std::vector<std::vector<Offer>>& offers)
      : exchange_(exchange), plan_(exchange.peers.plan()), opened_(opened), offers_(offers) {}

  void connect() {
    const std::uint32_t own = static_cast<std::uint32_t>(plan_.rank), size = exchange_.peers.size();
    for (std::uint32_t distance = 1; distance < size; ++distance) {
      const std::uint32_t rank = (own + distance) % size;  // start at different ranks
      if (exchange_.peers[rank].is_remote) connect(rank);
    }
  }
  /// Waits until the greetings of all remote ranks have arrived.
  void wait() {
    const detail::Deadline deadline(plan_.deadline_ns);
    for (;;) {
      const bool is_late = deadline.passed();  // read first, so that a greeting before the deadline counts
      if (!exchange_.turn()) ::sched_yield();
      const std::vector<int> silent = exchange_.peers.silent();
      if (silent.empty()) return;
      for (const auto& [peer, reason] : exchange_.peers.take_lost(~std::uint64_t{0}))
        throw Error(
            Status::unreachable,
            fmt::format("rank {} is not reached over {}: {}; {}", peer, label_to(peer), reason, devices_to(peer)),
            plan_.rank);
      if (is_late)
        throw Error(Status::deadline,
                    fmt::format("nothing has come over {} from {} within {} s: a firewall, or networks that are not "
                                "connected; {}",
                                label_to(silent.front()), detail::rank_list(silent), deadline.total_seconds(),
                                devices_to(silent.front())),
                    plan_.rank);
    }
  }

 private:
  void connect(std::uint32_t rank) {
    const int peer = static_cast<int>(rank);
    const std::string& name = transport_between(offers_, plan_.rank, peer);
    const auto found = std::ranges::find(opened_, name, &TransportRow::name);
    RemotePeer& to = exchange_.peers[rank];
    to.transport = *found;
    to.worker = exchange_.workers[static_cast<std::size_t>(found - opened_.begin())].get();
    to.takes_device_memory = to.transport->device_memory && plan_.gives_device_memory();
    to.worker->connect(peer, find_offer(offers_[rank], name)->address, devices_to(peer));
    exchange_.peers.notify(rank, MessageKind::hello, 0);
  }
  [[nodiscard]] const TransportRow& transport_to(int peer) const {
    return *exchange_.peers[static_cast<std::uint32_t>(peer)].transport;
  }
  [[nodiscard]] std::string label_to(int peer) const { return transport_to(peer).label(); }
  [[nodiscard]] std::string devices_to(int peer) const {
    const TransportRow& transport = transport_to(peer);
    const auto devices_of = [&](int rank) {
      return find_offer(offers_[static_cast<std::size_t>(rank)], transport.name)->devices;
    };
    return fmt::format("rank {} uses {}, rank {} {}: {}", plan_.rank, devices_of(plan_.rank), peer, devices_of(peer),
                       transport.how_to_choose_devices);
  }

  RemoteExchange& exchange_;
  const NetworkPlan& plan_;
  const std::vector<const TransportRow*>& opened_;
  const std::vector<std::vector<Offer>>& offers_;
};

}  // namespace

std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, NetworkPlan plan, FailureEvents events) {
  explore(bootstrap, plan);
  std::unique_ptr<RemoteExchange> exchange;
  std::vector<const TransportRow*> opened;
  std::vector<Offer> mine;
  const Problem problem = problem_of([&] {
    allow_sockets(plan);
    exchange = std::make_unique<RemoteExchange>(plan);
    opened = open_transports(plan, *exchange);
    for (std::size_t each = 0; each < opened.size(); ++each)
      mine.push_back({opened[each]->name, opened[each]->devices(plan), exchange->workers[each]->address()});
  });
  fail_together(bootstrap, problem, plan.deadline_ns);
  for (const TransportRow* each : opened)
    if (const std::string warning = each->warning(); plan.rank == 0 && !warning.empty())
      log(LogLevel::warning, warning, 0);
  std::vector<std::vector<Offer>> offers;
  for (const auto& content : introduce(bootstrap, plan, encode_offers(mine))) offers.push_back(decode_offers(content));
  require_transports(plan, offers);
  Connector connector(*exchange, opened, offers);
  connector.connect();
  connector.wait();
  for (std::uint32_t rank = 0; rank < exchange->peers.size(); ++rank)
    if (exchange->peers[rank].is_remote) exchange->keys.choose(static_cast<int>(rank));
  return make_network_engine(std::move(exchange), std::move(events));
}

}  // namespace beeline
