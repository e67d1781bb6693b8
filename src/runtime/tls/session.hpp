// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One end of a TLS 1.3 connection, without its socket. Both ends show that they know a pre-shared key; the key of the
/// traffic is made anew for each connection (psk_dhe_ke). There are no certificates, tickets or early data.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace beeline::detail {

using TlsKey = std::array<unsigned char, 32>;

/// Returns the key of a client's identity; nullopt: no such client is expected.
using FindTlsKey = std::function<std::optional<TlsKey>(const std::string& identity)>;

/// Used by one thread at a time. A session that has failed reads and writes nothing more.
class TlsSession {
 public:
  virtual ~TlsSession() = default;

  /// Room for bytes of the peer, to be followed by `received`. Only while `has_input` is false.
  [[nodiscard]] virtual std::span<std::byte> room() = 0;
  virtual void received(std::size_t bytes) = 0;
  /// Whether `read` may return bytes of the peer that have been received.
  [[nodiscard]] virtual bool has_input() const = 0;
  /// Bytes for the peer, to be followed by `sent`. Empty after a failure: a server whose client does not know the key
  /// answers nothing.
  [[nodiscard]] virtual std::span<const std::byte> output() const = 0;
  virtual void sent(std::size_t bytes) = 0;

  /// Decrypts; begins and goes on with the handshake. Returns the number of bytes; 0: it needs more input, or has
  /// failed.
  [[nodiscard]] virtual std::size_t read(std::span<std::byte> to) = 0;
  /// Encrypts at most one record. Begins the handshake; returns 0 until it has ended, or if the session has failed.
  [[nodiscard]] virtual std::size_t write(std::span<const std::byte> from) = 0;

  /// Whether the handshake has ended: the peer knows the key of `identity`.
  [[nodiscard]] virtual bool is_established() const = 0;
  [[nodiscard]] virtual const std::string& identity() const = 0;  ///< of the client
  /// Why the session has failed; empty if it has not.
  [[nodiscard]] virtual const std::string& failure() const = 0;
};

/// Most bytes that `TlsSession::write` takes.
inline constexpr std::size_t tls_record_bytes = 16384;

/// Why this build or machine has no TLS, and what to install; empty if it has. Opens OpenSSL.
[[nodiscard]] std::string tls_reason();

// The functions below throw unavailable if there is no TLS, with the reason of `tls_reason`.

/// A key by HKDF with SHA-256.
///   secret   known to both ends and to no others
///   salt     differs from world to world; may be empty
///   context  the purpose of the key, and the identity to which the key belongs
[[nodiscard]] TlsKey derive_tls_key(std::string_view secret, std::string_view salt, std::string_view context);
/// The end that opens the connection. `identity` travels unencrypted.
///   records_per_key  the key of the traffic is changed after so many records: AES-GCM limits the data of a key
[[nodiscard]] std::unique_ptr<TlsSession> make_tls_client(std::string identity, const TlsKey& key,
                                                          std::uint64_t records_per_key = std::uint64_t{1} << 22);
[[nodiscard]] std::unique_ptr<TlsSession> make_tls_server(FindTlsKey find);

}  // namespace beeline::detail
