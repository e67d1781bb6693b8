// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "runtime/socket.hpp"

namespace beeline::detail {

namespace {

constexpr std::size_t most_unsent_bytes = std::size_t{64} << 10;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

ssize_t receive(int socket, std::span<std::byte> to) {
  for (;;) {
    const ssize_t got = ::recv(socket, to.data(), to.size(), 0);
    if (got >= 0 || errno != EINTR) return got;
  }
}

ssize_t send(int socket, std::span<const std::byte> head, std::span<const std::byte> payload) {
  std::array<iovec, 2> parts = {
      {{const_cast<std::byte*>(head.data()), head.size()}, {const_cast<std::byte*>(payload.data()), payload.size()}}};
  msghdr message{};
  message.msg_iov = parts.data(), message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

}  // namespace

ssize_t TcpStream::read(std::span<std::byte> to) {
  if (!tls_) return receive(socket_.get(), to);
  std::size_t total = tls_->has_input() ? tls_->read(to) : 0;
  ssize_t got = -1;
  if (total == 0 && !tls_->has_input() && tls_->failure().empty()) {
    got = receive(socket_.get(), tls_->room());
    if (got == 0 || (got < 0 && !would_block(errno))) return got;
    if (got > 0) tls_->received(static_cast<std::size_t>(got));
    total = tls_->read(to);
  }
  if (!flush() && !is_blocked_) return -1;
  if (total != 0) return static_cast<ssize_t>(total);
  errno = tls_->failure().empty() ? EAGAIN : EPROTO;
  return -1;
}

ssize_t TcpStream::write(std::span<const std::byte> head, std::span<const std::byte> payload) {
  if (tls_) return write_encrypted(head, payload);
  const ssize_t sent = send(socket_.get(), head, payload);
  is_blocked_ = sent < 0 && would_block(errno);
  return sent;
}

ssize_t TcpStream::write_encrypted(std::span<const std::byte> head, std::span<const std::byte> payload) {
  if (!flush()) return -1;
  std::array<std::byte, tls_record_bytes> first;  // holds short messages whole: one record is one operation of AES
  std::size_t total = 0;
  const std::size_t all = head.size() + payload.size();
  while (total < all && tls_->output().size() < most_unsent_bytes) {
    std::span<const std::byte> next = payload.subspan(total - std::min(total, head.size()));
    if (total < head.size()) {
      const auto of_head = head.subspan(total).first(std::min(head.size() - total, first.size()));
      const auto of_payload = payload.first(std::min(payload.size(), first.size() - of_head.size()));
      std::ranges::copy(of_payload, std::ranges::copy(of_head, first.begin()).out);
      next = std::span(first).first(of_head.size() + of_payload.size());
    }
    const std::size_t taken = tls_->write(next);
    if (taken == 0) break;
    total += taken;
  }
  if (!flush() && !is_blocked_) return -1;
  if (total != 0 || all == 0) return static_cast<ssize_t>(total);
  errno = tls_->failure().empty() ? EAGAIN : EPROTO;
  return -1;
}

bool TcpStream::flush() {
  is_blocked_ = false;
  while (tls_ && !tls_->output().empty()) {
    const ssize_t sent = send(socket_.get(), tls_->output(), {});
    is_blocked_ = sent < 0 && would_block(errno);
    if (sent < 0) return false;
    tls_->sent(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string TcpStream::failure(int error) const {
  return error == EPROTO && tls_ ? tls_->failure() : system_message(error);
}

}  // namespace beeline::detail
