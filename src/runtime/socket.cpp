// SPDX-License-Identifier: Apache-2.0
#include "runtime/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "core/thread.hpp"
#include "runtime/name_lookup.hpp"

namespace beeline::detail {

namespace {

struct Endpoint {
  std::string host, port;
};

/// Splits host:port, [v6 host]:port, or either without a port; an IPv6 address without a port needs no brackets.
Endpoint split_endpoint(const std::string& text) {
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string::npos) return {};
    const std::string rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return {};
    return {text.substr(1, close - 1), rest.empty() ? rest : rest.substr(1)};
  }
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || text.find(':') != colon) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Checks the range, because getaddrinfo takes the last 16 bits of larger numbers.
bool is_port(const std::string& text) {
  unsigned port = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, port);
  return error == std::errc() && end == last && port <= 65535;
}

/// Longest lookup of a name for which no deadline is given.
constexpr std::int64_t longest_lookup_ns = 30'000'000'000;

Lookup look_up(const Endpoint& endpoint, const std::string& text, addrinfo hints, const Deadline& deadline) {
  hints.ai_family = AF_UNSPEC;
  hints.ai_flags |= AI_NUMERICSERV;
  const std::string port = endpoint.port.empty() ? "0" : endpoint.port;
  require(is_port(port), Status::invalid_argument,
          fmt::format("\"{}\" is no address: '{}' is no port; valid: 0 to 65535", text, port));
  return look_up(endpoint.host, port, hints, deadline);
}

AddressList resolve(const Endpoint& endpoint, const std::string& text, int flags, int type = SOCK_STREAM) {
  addrinfo hints{};
  hints.ai_flags = flags, hints.ai_socktype = type;
  Lookup found = look_up(endpoint, text, hints, Deadline(longest_lookup_ns));
  require(found.error == 0, Status::invalid_argument,
          fmt::format("\"{}\" is no address: {}", text, ::gai_strerror(found.error)));
  return std::move(found.list);
}

/// Resolves a name that may become known later, such as that of a container which is not up yet.
AddressList resolve_by(const Endpoint& endpoint, const std::string& text, const Deadline& deadline) {
  constexpr std::chrono::milliseconds pause{100};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  while (true) {
    Lookup found = look_up(endpoint, text, hints, deadline);
    if (found.error == 0) return std::move(found.list);
    if (deadline.passed())
      throw Error(Status::unreachable, fmt::format("the name of \"{}\" was not found within {} s: {}", text,
                                                   deadline.total_seconds(), ::gai_strerror(found.error)));
    throw_if_interrupted(-1);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline.end() - Deadline::Clock::now()));
  }
}

FileDescriptor make_socket(const addrinfo& address) {
  return FileDescriptor(
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
}

/// Connects. Returns 0, or the errno of the failed attempt.
int connect_to(int socket, const addrinfo& address, const Deadline& deadline) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (wait_ready(socket, POLLOUT, -1, deadline) == Ready::deadline) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

/// Whether a connection leads to its own socket. Where no program listens, the kernel may happen to choose the port
/// that is asked for as the local one, and both ends are the same.
bool leads_to_itself(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 && own_bytes == peer_bytes &&
         std::memcmp(&own, &peer, own_bytes) == 0;
}

/// The local address of a bound socket.
Endpoint own_endpoint(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool named = ::getsockname(socket, generic, &length) == 0 &&
                     ::getnameinfo(generic, length, host.data(), host.size(), port.data(), port.size(),
                                   NI_NUMERICHOST | NI_NUMERICSERV) == 0;
  require(named, Status::internal, "the address of a socket cannot be read");
  return {host.data(), port.data()};
}

}  // namespace

std::string system_message(int error) { return std::generic_category().message(error); }

bool has_port(const std::string& endpoint) { return !split_endpoint(endpoint).port.empty(); }

void await_name(const std::string& endpoint, const Deadline& deadline) {
  static_cast<void>(resolve_by(split_endpoint(endpoint), endpoint, deadline));
}

FileDescriptor listen_tcp(const std::string& address) {
  const AddressList list = resolve(split_endpoint(address), address, AI_PASSIVE);
  FileDescriptor listener = make_socket(*list);
  const int on = 1;
  constexpr int backlog = 2048;  // more than the ranks of a world, so that all may connect at once
  const bool listening = listener && ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                         ::bind(listener.get(), list->ai_addr, list->ai_addrlen) == 0 &&
                         ::listen(listener.get(), backlog) == 0;
  require(listening, Status::unreachable, fmt::format("cannot listen on {}: {}", address, system_message(errno)));
  return listener;
}

std::string local_endpoint(int listener) {
  const Endpoint own = own_endpoint(listener);
  return fmt::format(fmt::runtime(own.host.find(':') != std::string::npos ? "[{}]:{}" : "{}:{}"), own.host, own.port);
}

FileDescriptor connect_tcp(const std::string& endpoint, const Deadline& deadline) {
  const Endpoint parts = split_endpoint(endpoint);
  require(!parts.host.empty() && !parts.port.empty(), Status::invalid_argument,
          fmt::format("\"{}\" is no rendezvous: expected host:port", endpoint));
  const AddressList list = resolve_by(parts, endpoint, deadline);
  constexpr std::int64_t longest_attempt_ns = 8'000'000'000;  // within it the kernel repeats its request three times
  int error = 0;
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    FileDescriptor socket = make_socket(*address);
    require(static_cast<bool>(socket), Status::no_resource, fmt::format("no socket: {}", system_message(errno)));
    error = connect_to(socket.get(), *address, Deadline(std::min(deadline.remaining_ns(), longest_attempt_ns)));
    if (error == 0 && leads_to_itself(socket.get())) error = ECONNREFUSED;
    if (error == 0) {
      tune_connection(socket.get());
      return socket;
    }
  }
  if (error == ETIMEDOUT && deadline.passed())
    throw Error(Status::deadline,
                fmt::format("{} did not accept a connection within {} s", endpoint, deadline.total_seconds()));
  throw Error(Status::unreachable,
              fmt::format("cannot connect to the rendezvous server at {}: {}", endpoint, system_message(error)));
}

void tune_connection(int socket) {
  constexpr int idle_s = 10, interval_s = 5, probes = 3, unanswered_ms = (idle_s + probes * interval_s) * 1000;
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms);
}

Ready wait_ready(int descriptor, short events, int cancel, const Deadline& deadline) {
  while (true) {
    std::array<pollfd, 2> set{{{descriptor, events, 0}, {cancel, POLLIN, 0}}};  // poll ignores a descriptor of -1
    const int count = ::poll(set.data(), set.size(), deadline.poll_milliseconds());
    if (count > 0) return set[1].revents != 0 ? Ready::cancelled : Ready::yes;
    if (count == 0 && deadline.passed()) return Ready::deadline;
  }
}

Event::Event() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  require(static_cast<bool>(descriptor_), Status::no_resource, fmt::format("no eventfd: {}", system_message(errno)));
}

void Event::raise() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_.get(), &one, sizeof(one));  // fails only if raised
}

void Event::lower() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_.get(), &count, sizeof(count));  // fails only if not raised
}

std::thread start_thread(const char* purpose, void (*body)(void*), void* argument) {
  const AllSignalsBlocked blocked;
  return start_thread_for(purpose, [body, argument] { body(argument); });
}

}  // namespace beeline::detail

namespace beeline {

std::string own_address_towards(const std::string& endpoint) {
  detail::Endpoint parts = detail::split_endpoint(endpoint);
  parts.port = "9";  // any port: no packet is sent
  const detail::AddressList list = detail::resolve(parts, endpoint, 0, SOCK_DGRAM);
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    const FileDescriptor socket = detail::make_socket(*address);
    if (socket && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0)
      return detail::own_endpoint(socket.get()).host;
  }
  throw Error(Status::unreachable, fmt::format("no route to {}: {}", endpoint, detail::system_message(errno)));
}

}  // namespace beeline
