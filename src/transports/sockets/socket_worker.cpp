// SPDX-License-Identifier: Apache-2.0
#include "transports/sockets/socket_worker.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"
#include "transports/sockets/connection_keys.hpp"

namespace beeline {

namespace {

/// A connection that has not introduced itself within this time is closed.
constexpr std::uint64_t introduction_ns = 10'000'000'000;
constexpr std::size_t most_visitors = 256;
constexpr int most_ready = 64;
// The data of `ready_` for a connection is its rank; these are the data for other descriptors.
constexpr std::uint64_t of_acceptor = ~std::uint64_t{0}, of_visitor = of_acceptor - 1, of_dial = of_acceptor - 2;

detail::TcpStream stream_of(asio::ip::tcp::socket socket, std::unique_ptr<detail::TlsSession> tls) {
  asio::error_code ignored;  // an error means that the connection has ended: its first read reports that
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  return detail::TcpStream(FileDescriptor(socket.release(ignored)), std::move(tls));
}

}  // namespace

SocketWorker::SocketWorker(const NetworkPlan& plan, const SocketFaults& faults, WorkerEvents& events)
    : plan_(plan), faults_(faults), events_(events), ready_(::epoll_create1(EPOLL_CLOEXEC)),
      waits_to_write_(plan.node_of.size()) {
  require(static_cast<bool>(ready_) &&
              ::getrandom(secret_.data(), secret_.size(), 0) == static_cast<ssize_t>(sizeof(Secret)),
          Status::unavailable, fmt::format("sockets between nodes: {}", std::strerror(errno)));
  for (int rank = 0; rank < static_cast<int>(plan.node_of.size()); ++rank)
    connections_.emplace_back(rank, events_, faults_);
  try {
    listen();
  } catch (const std::system_error& error) {
    throw Error(Status::unavailable, fmt::format("sockets between nodes: {}", error.what()));
  }
}

/// Listens on the addresses of the chosen devices alone: other networks find no port. If all ranks are on one host, on
/// the loop-back address.
void SocketWorker::listen() {
  if (plan_.is_one_host) listen_at({asio::ip::address_v4::loopback(), 0});
  for (const NetworkDevice& device : plan_.devices)
    for (const std::string& each : device.addresses) listen_at({asio::ip::make_address(each), 0});
}

void SocketWorker::listen_at(const Tcp::endpoint& endpoint) {
  Tcp::acceptor acceptor(context_, endpoint.protocol());
  acceptor.bind(endpoint);
  acceptor.listen(static_cast<int>(std::max<std::size_t>(plan_.node_of.size(), 64)));
  acceptor.non_blocking(true);
  watch(acceptor.native_handle(), EPOLLIN, of_acceptor);
  acceptors_.push_back(std::move(acceptor));
}

std::vector<std::byte> SocketWorker::address() const {
  std::vector<std::byte> all(secret_.begin(), secret_.end());
  std::string text;
  for (const Tcp::acceptor& each : acceptors_) {
    const Tcp::endpoint endpoint = each.local_endpoint();
    text += fmt::format("{} {}\n", endpoint.port(), endpoint.address().to_string());
  }
  std::ranges::copy(std::as_bytes(std::span(text)), std::back_inserter(all));
  return all;
}

void SocketWorker::connect(int peer, std::span<const std::byte> address, const std::string& remark) {
  if (plan_.rank > peer) return;  // the peer opens the connection
  Dial& dial = dials_.emplace_back(Dial{peer, {}, {}, {}});
  if (address.size() >= sizeof(Secret)) {
    std::memcpy(dial.secret.data(), address.data(), sizeof(Secret));
    std::string text = text_in(address.subspan(sizeof(Secret)));
    for (std::size_t end = text.find('\n'); end != text.npos; text.erase(0, end + 1), end = text.find('\n')) {
      const std::string port = text.substr(0, std::min(text.find(' '), end));
      asio::error_code error;
      const auto each = asio::ip::make_address(text.substr(port.size() + 1, end - port.size() - 1), error);
      if (!error) dial.left.emplace_back(each, static_cast<std::uint16_t>(std::stoul("0" + port)));
    }
  }
  require(!dial.left.empty(), Status::unreachable, fmt::format("sockets find no address of rank {}; {}", peer, remark));
  dial_next(dial, {});
}

void SocketWorker::dial_next(Dial& dial, const std::string& why_not) {
  std::string reason = why_not;
  for (; !dial.left.empty(); dial.left.pop_front()) {
    const Tcp::endpoint endpoint = dial.left.front();
    asio::error_code error;
    dial.socket.emplace(context_);
    dial.socket->open(endpoint.protocol(), error);
    if (!error) dial.socket->non_blocking(true, error);
    // Asio's own `connect` would block.
    if (!error &&
        ::connect(dial.socket->native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 &&
        errno != EINPROGRESS)
      error.assign(errno, asio::error::get_system_category());
    if (error) {
      reason = error.message();
      continue;
    }
    dial.left.pop_front();
    return watch(dial.socket->native_handle(), EPOLLOUT, of_dial);
  }
  dial.socket.reset();
  to(dial.peer).lose(reason);
}

void SocketWorker::end_dials() {
  for (auto dial = dials_.begin(); dial != dials_.end();) {
    pollfd writable{dial->socket ? dial->socket->native_handle() : -1, POLLOUT, 0};
    if (dial->socket && ::poll(&writable, 1, 0) == 1) {
      int code = 0;
      socklen_t bytes = sizeof code;
      ::getsockopt(writable.fd, SOL_SOCKET, SO_ERROR, &code, &bytes);
      if (code != 0) {
        dial_next(*dial, std::strerror(code));
      } else {
        const Introduction mine{dial->secret, static_cast<std::uint32_t>(plan_.rank),
                                static_cast<std::uint32_t>(dial->peer)};
        const auto first = std::as_bytes(std::span(&mine, 1));
        open(dial->peer, stream_of(std::move(*dial->socket), dialing_session(plan_, dial->peer, dial->secret)),
             {first.begin(), first.end()});
        dial->socket.reset();
      }
    }
    dial = dial->socket ? std::next(dial) : dials_.erase(dial);
  }
}

void SocketWorker::accept(Tcp::acceptor& acceptor) {
  for (;;) {
    asio::error_code error;
    Tcp::socket socket(context_);
    acceptor.accept(socket, error);
    if (error) return;
    if (visitors_.size() >= most_visitors) continue;  // the socket is closed
    socket.non_blocking(true, error);
    watch(socket.native_handle(), EPOLLIN, of_visitor);
    visitors_.push_back(
        {stream_of(std::move(socket), accepting_session(plan_, secret_)), machine::clock_ns() + introduction_ns});
  }
}

bool SocketWorker::read_introductions() {
  const std::size_t before = visitors_.size();
  visitors_.remove_if([this](Visitor& each) { return is_over(each); });
  return visitors_.size() != before;
}

bool SocketWorker::is_over(Visitor& visitor) {
  const ssize_t bytes = visitor.stream.read(std::span(visitor.introduction).subspan(visitor.bytes));
  if (bytes < 0 && errno == EAGAIN) return machine::clock_ns() > visitor.deadline_ns;
  if (bytes <= 0) return true;
  visitor.bytes += static_cast<std::size_t>(bytes);
  if (visitor.bytes < sizeof(Introduction)) return false;
  Introduction theirs;
  std::memcpy(&theirs, visitor.introduction.data(), sizeof theirs);
  const bool is_ours = theirs.secret == secret_ && theirs.to == static_cast<std::uint32_t>(plan_.rank) &&
                       theirs.from < theirs.to && is_own_key(visitor.stream, static_cast<int>(theirs.from)) &&
                       !to(static_cast<int>(theirs.from)).is_open() && !to(static_cast<int>(theirs.from)).is_lost();
  if (is_ours) open(static_cast<int>(theirs.from), std::move(visitor.stream), {});
  return true;
}

bool SocketWorker::is_own_key(const detail::TcpStream& stream, int from) const {
  return !plan_.is_secure ||
         (stream.identity() != nullptr && *stream.identity() == connection_identity(from, plan_.rank));
}

void SocketWorker::open(int peer, detail::TcpStream stream, std::vector<std::byte> first) {
  watch(stream.descriptor(), EPOLLIN, static_cast<std::uint64_t>(peer));
  to(peer).open(std::move(stream), std::move(first));
  watch_blocked(peer);
}

void SocketWorker::watch(int descriptor, std::uint32_t events, std::uint64_t what) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = what;
  const bool is_new = ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  if (!is_new) ::epoll_ctl(ready_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void SocketWorker::watch_blocked(int peer) {
  SocketConnection& connection = to(peer);
  const auto rank = static_cast<std::size_t>(peer);
  if (connection.is_blocked() == waits_to_write_[rank] || !connection.is_open()) return;
  waits_to_write_[rank] = connection.is_blocked();
  watch(connection.descriptor(), connection.is_blocked() ? EPOLLIN | EPOLLOUT : EPOLLIN,
        static_cast<std::uint64_t>(peer));
}

bool SocketWorker::send(int peer, const NetworkMessage& message, std::span<const std::byte> payload,
                        std::uint64_t token, StagedBytes staged, DeviceKind) {
  const bool is_reusable = to(peer).send(message, payload, token, std::move(staged));
  watch_blocked(peer);
  return is_reusable;
}

bool SocketWorker::fetch(int peer, void* parcel, std::span<std::byte> to_memory, std::uint64_t number, DeviceKind) {
  to(peer).fetch(*static_cast<Parcel*>(parcel), to_memory, number);
  watch_blocked(peer);
  return false;
}

void SocketWorker::drop(void* parcel) {
  auto& dropped = *static_cast<Parcel*>(parcel);
  const int peer = dropped.peer;
  to(peer).drop(dropped);
  watch_blocked(peer);
}

void SocketWorker::close() {
  for (SocketConnection& each : connections_) each.close();
  dials_.clear();
  visitors_.clear();
}

void SocketWorker::disconnect(int peer) { to(peer).lose("it was given up"); }

bool SocketWorker::release_delayed() {
  bool any = false;
  for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
    any = connections_[peer].release_delayed() || any;
    watch_blocked(static_cast<int>(peer));
  }
  return any;
}

bool SocketWorker::progress() {
  bool any = false;
  if (faults_.delays()) any = release_delayed();
  std::array<epoll_event, most_ready> ready;
  const int count = ::epoll_wait(ready_.get(), ready.data(), most_ready, 0);
  bool has_visitors = !visitors_.empty(), has_dials = false;
  for (int each = 0; each < count; ++each) {
    const epoll_event event = ready[static_cast<std::size_t>(each)];
    if (event.data.u64 == of_acceptor)
      for (Tcp::acceptor& acceptor : acceptors_) accept(acceptor);
    has_visitors = has_visitors || event.data.u64 == of_acceptor || event.data.u64 == of_visitor;
    has_dials = has_dials || event.data.u64 == of_dial;
    if (event.data.u64 >= of_dial) continue;
    const int peer = static_cast<int>(event.data.u64);
    if (to(peer).is_open() && (event.events & EPOLLOUT) != 0) to(peer).write();
    if (to(peer).is_open() && (event.events & ~std::uint32_t{EPOLLOUT}) != 0) static_cast<void>(to(peer).read());
    watch_blocked(peer);
    any = true;
  }
  if (has_dials) end_dials();
  if (has_visitors) any = read_introductions() || any;
  return any || has_dials;
}

bool SocketWorker::arm() {
  return std::ranges::none_of(connections_,
                              [](const SocketConnection& each) { return each.has_delayed() && each.is_open(); });
}

}  // namespace beeline
