// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bytes of a non-blocking TCP connection, which TLS encrypts if the connection has a session.

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/tls/session.hpp"

namespace beeline::detail {

/// Used by one thread at a time.
class TcpStream {
 public:
  TcpStream() = default;
  explicit TcpStream(FileDescriptor socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() { socket_.reset(); }

  // These return as `recv` and `send` do: a number of bytes, or -1, with errno; EPROTO: see `failure`.

  /// Receives at most once with TLS, so `has_input` tells whether more can be read at once.
  [[nodiscard]] ssize_t read(std::span<std::byte> to);
  /// Writes `head`, then `payload`. With TLS, the bytes taken may be encrypted, and wait until the socket accepts them.
  [[nodiscard]] ssize_t write(std::span<const std::byte> head, std::span<const std::byte> payload = {});
  /// Sends encrypted bytes that wait. Returns whether none is left.
  bool flush();

  [[nodiscard]] bool has_input() const { return tls_ && tls_->has_input(); }
  /// Whether bytes wait until the socket accepts more, after `write` or `flush`.
  [[nodiscard]] bool is_blocked() const { return is_blocked_; }
  /// Whether `write` can take bytes: false until TLS's handshake has ended, which `read` brings forward.
  [[nodiscard]] bool is_ready() const { return !tls_ || tls_->is_established(); }
  /// The identity whose key the client at the other end has shown; nullptr without TLS, or if the handshake has not
  /// ended.
  [[nodiscard]] const std::string* identity() const {
    return tls_ && tls_->is_established() ? &tls_->identity() : nullptr;
  }
  /// The text of an errno that `read` or `write` has set.
  [[nodiscard]] std::string failure(int error) const;

 private:
  [[nodiscard]] ssize_t write_encrypted(std::span<const std::byte> head, std::span<const std::byte> payload);

  FileDescriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  bool is_blocked_ = false;
};

}  // namespace beeline::detail
