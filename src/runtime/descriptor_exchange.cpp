// SPDX-License-Identifier: Apache-2.0
#include "runtime/descriptor_exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/rank_list.hpp"
#include "runtime/socket.hpp"

namespace beeline::detail {

namespace {

/// One message; a bit for each member whose descriptor is attached. Each member sends its own, the first sends all.
struct Message {
  std::int32_t from = -1;   ///< index among the members
  std::uint32_t count = 0;  ///< number of members that the message covers
  std::uint64_t present = 0;
};
static_assert(max_node_ranks <= 64, "one bit for each rank");

union Control {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(sizeof(int) * max_node_ranks)> bytes;
};

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length;
  explicit UnixAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // a first byte of 0: no file; gone with the socket
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

FileDescriptor unix_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  require(static_cast<bool>(socket), Status::no_resource, fmt::format("no Unix socket: {}", system_message(errno)));
  return socket;
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

/// The descriptors attached to a message, in order.
std::vector<FileDescriptor> attached(msghdr& header) {
  std::vector<FileDescriptor> all;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      all.emplace_back(descriptor);
    }
  }
  return all;
}

}  // namespace

DescriptorExchange::DescriptorExchange(int rank, std::vector<int> members, int cancel)
    : members_(std::move(members)), rank_(rank), size_(static_cast<int>(members_.size())), cancel_(cancel) {
  place_ = static_cast<int>(std::find(members_.begin(), members_.end(), rank) - members_.begin());
}

std::string DescriptorExchange::open() {
  const std::string name = "beeline-" + make_token();
  listener_ = unix_socket();
  const UnixAddress address(name);
  const bool listening =
      ::bind(listener_.get(), address.get(), address.length) == 0 && ::listen(listener_.get(), SOMAXCONN) == 0;
  require(listening, Status::no_resource, fmt::format("cannot listen on a Unix socket: {}", system_message(errno)));
  return name;
}

void DescriptorExchange::connect(const std::string& name, const Deadline& deadline) {
  if (place_ == 0) return accept_all(deadline);
  FileDescriptor socket = unix_socket();
  const UnixAddress address(name);
  if (::connect(socket.get(), address.get(), address.length) != 0)
    throw Error(Status::unreachable,
                fmt::format("cannot connect to rank {} for descriptors: {}", members_.front(), system_message(errno)),
                rank_);
  if (!same_user(socket.get()))
    throw Error(Status::unreachable, fmt::format("rank {} belongs to another user", members_.front()), rank_);
  send(socket.get(), {}, members_.front(), deadline);  // reports this rank's index
  peers_.push_back(std::move(socket));
}

void DescriptorExchange::accept_all(const Deadline& deadline) {
  peers_.resize(static_cast<std::size_t>(size_));
  std::vector<FileDescriptor> unknown;  // connected, rank not yet known
  for (int known = 1; known < size_;) {
    std::vector<pollfd> set = {{cancel_, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const FileDescriptor& each : unknown) set.push_back({each.get(), POLLIN, 0});
    const int ready = ::poll(set.data(), set.size(), deadline.poll_milliseconds());
    if (set[0].revents != 0) throw Error(Status::aborted, "the world ended during an exchange of descriptors", rank_);
    if (ready == 0 && deadline.passed()) {
      std::vector<int> missing;
      for (std::size_t place = 1; place < peers_.size(); ++place)
        if (!peers_[place]) missing.push_back(members_[place]);
      throw Error(Status::deadline,
                  fmt::format("no connection for descriptors from {} within {} s", rank_list(missing),
                              deadline.total_seconds()),
                  rank_);
    }
    for (std::size_t i = 2; i < set.size(); ++i) {
      if (set[i].revents == 0) continue;
      FileDescriptor socket = std::move(unknown[i - 2]);
      Message hello;
      const bool whole = ::recv(socket.get(), &hello, sizeof(hello), 0) == sizeof(hello);
      if (!whole || hello.from < 1 || hello.from >= size_ || peers_[static_cast<std::size_t>(hello.from)]) continue;
      peers_[static_cast<std::size_t>(hello.from)] = std::move(socket);
      ++known;
    }
    std::erase_if(unknown, [](const FileDescriptor& each) { return !each; });
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE))
      throw Error(Status::no_resource,
                  fmt::format("no connection for other ranks' descriptors: {}: raise the limit "
                              "(ulimit -n)",
                              system_message(errno)),
                  rank_);
    if (socket && same_user(socket.get())) unknown.push_back(std::move(socket));
  }
  listener_.reset();
}

std::vector<FileDescriptor> DescriptorExchange::exchange(int mine, const Deadline& deadline) {
  const auto duplicate = [&] {
    FileDescriptor copy(mine < 0 ? -1 : ::fcntl(mine, F_DUPFD_CLOEXEC, 0));
    if (mine >= 0 && !copy)
      throw Error(Status::invalid_argument,
                  fmt::format("descriptor {} cannot be duplicated: {}", mine, system_message(errno)), rank_);
    return copy;
  };
  std::vector<FileDescriptor> all;
  if (place_ == 0) {
    all.push_back(duplicate());
    for (std::size_t place = 1; place < peers_.size(); ++place)
      all.push_back(std::move(receive(peers_[place].get(), members_[place], 1, deadline).front()));
    for (std::size_t place = 1; place < peers_.size(); ++place)
      send(peers_[place].get(), all, members_[place], deadline);
    return all;
  }
  all.push_back(duplicate());
  send(peers_.front().get(), all, members_.front(), deadline);
  return receive(peers_.front().get(), members_.front(), static_cast<std::size_t>(size_), deadline);
}

void DescriptorExchange::wait(int socket, short events, int peer, const Deadline& deadline) const {
  const Ready ready = wait_ready(socket, events, cancel_, deadline);
  if (ready == Ready::cancelled)
    throw Error(Status::aborted, "the world ended during an exchange of descriptors", rank_);
  if (ready == Ready::deadline)
    throw Error(Status::deadline,
                fmt::format("rank {} did not exchange descriptors within {} s", peer, deadline.total_seconds()), rank_);
}

void DescriptorExchange::send(int socket, const std::vector<FileDescriptor>& descriptors, int peer,
                              const Deadline& deadline) const {
  Message message{.from = place_, .count = static_cast<std::uint32_t>(descriptors.size())};
  std::vector<int> numbers;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (!descriptors[i]) continue;
    message.present |= std::uint64_t{1} << i;
    numbers.push_back(descriptors[i].get());
  }
  iovec data{&message, sizeof(message)};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!numbers.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(numbers.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), numbers.data(), numbers.size() * sizeof(int));
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN) {
      wait(socket, POLLOUT, peer, deadline);
    } else if (errno == ETOOMANYREFS && !deadline.passed()) {
      // A user's descriptors in flight are limited to RLIMIT_NOFILE: the receivers are emptying their sockets.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (errno != EINTR) {
      const int error = errno;
      throw Error(error == EPIPE || error == ECONNRESET ? Status::peer_died : Status::internal,
                  fmt::format("descriptors cannot be sent to rank {}: {}", peer, system_message(error)), rank_);
    }
  }
}

std::vector<FileDescriptor> DescriptorExchange::receive(int socket, int peer, std::size_t count,
                                                        const Deadline& deadline) const {
  Message message;
  iovec data{&message, sizeof(message)};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = sizeof(control.bytes);
  ssize_t got;
  do {
    wait(socket, POLLIN, peer, deadline);
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EAGAIN || errno == EINTR));
  std::vector<FileDescriptor> received = got < 0 ? std::vector<FileDescriptor>{} : attached(header);
  if (got <= 0) throw Error(Status::peer_died, fmt::format("rank {} closed its socket for descriptors", peer), rank_);
  if ((header.msg_flags & MSG_CTRUNC) != 0)
    throw Error(Status::no_resource,
                "too many open files to receive the other ranks' descriptors: raise the limit (ulimit -n)", rank_);
  const auto present = static_cast<std::size_t>(std::popcount(message.present));
  if (got != sizeof(message) || message.count != count || present != received.size())
    throw Error(Status::internal, fmt::format("rank {} sent a malformed set of descriptors", peer), rank_);
  std::vector<FileDescriptor> all(count);
  for (std::size_t i = 0, next = 0; i < count; ++i)
    if ((message.present >> i & 1) != 0) all[i] = std::move(received[next++]);
  return all;
}

}  // namespace beeline::detail
