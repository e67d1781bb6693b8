// SPDX-License-Identifier: Apache-2.0
#include "runtime/tls/session.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "runtime/tls/openssl.hpp"

namespace beeline::detail {

namespace {

constexpr std::size_t room_bytes = std::size_t{64} << 10;
constexpr std::size_t most_identity_bytes = 128;
constexpr int own_data = 0;  // index of an SSL's data: its session

/// The oldest of OpenSSL's errors of this thread. Empties their queue.
std::string take_error() {
  const char* const text = openssl().ERR_reason_error_string(openssl().ERR_get_error());
  openssl().ERR_clear_error();
  return text == nullptr ? "unknown error" : text;
}

[[noreturn]] void fail(const char* call) {
  throw Error(Status::unavailable, fmt::format("OpenSSL's {} failed: {}", call, take_error()));
}

class OpenSslSession final : public TlsSession {
 public:
  OpenSslSession(std::string identity, std::optional<TlsKey> key, FindTlsKey find, std::uint64_t records_per_key);
  ~OpenSslSession() override { openssl().SSL_free(ssl_); }
  OpenSslSession(const OpenSslSession&) = delete;
  OpenSslSession& operator=(const OpenSslSession&) = delete;

  [[nodiscard]] std::span<std::byte> room() override {
    input_.resize(room_bytes);
    return input_;
  }
  void received(std::size_t bytes) override { begin_ = 0, end_ = bytes; }
  [[nodiscard]] bool has_input() const override {
    return failure_.empty() && (begin_ != end_ || openssl().SSL_pending(ssl_) != 0);
  }
  [[nodiscard]] std::span<const std::byte> output() const override { return std::span(output_).subspan(sent_); }
  void sent(std::size_t bytes) override;
  [[nodiscard]] std::size_t read(std::span<std::byte> to) override;
  [[nodiscard]] std::size_t write(std::span<const std::byte> from) override;
  [[nodiscard]] bool is_established() const override { return is_established_; }
  [[nodiscard]] const std::string& identity() const override { return identity_; }
  [[nodiscard]] const std::string& failure() const override { return failure_; }

 private:
  /// OpenSSL's settings for all sessions of the process.
  static SSL_CTX* context();
  static SSL_CTX* make_context();
  static BIO_METHOD* make_bio_method();
  static int read_bio(BIO* bio, char* to, int bytes);
  static int write_bio(BIO* bio, const char* from, int bytes);
  static long control_bio(BIO* bio, int command, long, void*);
  static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
                     SSL_SESSION** session);
  static int find_key(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session);
  static OpenSslSession& of(SSL* ssl) {
    return *static_cast<OpenSslSession*>(openssl().SSL_get_ex_data(ssl, own_data));
  }

  /// Goes on with the handshake. Returns whether it has ended.
  bool shake_hands();
  /// Records why a call has failed, unless it needs more input.
  void check(int result);
  void give_up(std::string reason);

  SSL* ssl_;
  const bool is_server_;
  std::string identity_;
  const std::optional<TlsKey> key_;  ///< a client's
  const FindTlsKey find_;            ///< a server's
  const std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;  ///< encrypted with the current key
  bool is_established_ = false;
  std::string failure_;
  std::vector<std::byte> input_, output_;
  std::size_t begin_ = 0, end_ = 0;  ///< the bytes of `input_` that OpenSSL has not taken
  std::size_t sent_ = 0;             ///< bytes at the front of `output_` that have been sent
};

OpenSslSession::OpenSslSession(std::string identity, std::optional<TlsKey> key, FindTlsKey find,
                               std::uint64_t records_per_key)
    : ssl_(openssl().SSL_new(context())), is_server_(!key), identity_(std::move(identity)), key_(key),
      find_(std::move(find)), records_per_key_(records_per_key) {
  static BIO_METHOD* const method = make_bio_method();
  BIO* const bio = ssl_ == nullptr ? nullptr : openssl().BIO_new(method);
  if (bio == nullptr) {
    openssl().SSL_free(ssl_);
    fail("SSL_new");
  }
  openssl().BIO_set_data(bio, this);
  openssl().BIO_set_init(bio, 1);
  openssl().SSL_set_bio(ssl_, bio, bio);  // `ssl_` owns `bio`
  openssl().SSL_set_ex_data(ssl_, own_data, this);
  if (is_server_) {
    openssl().SSL_set_accept_state(ssl_);
    return;
  }
  openssl().SSL_set_connect_state(ssl_);
  openssl().SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // no certificate is trusted
}

SSL_CTX* OpenSslSession::context() {
  static SSL_CTX* const made = make_context();
  return made;
}

SSL_CTX* OpenSslSession::make_context() {
  SSL_CTX* const made = openssl().SSL_CTX_new(openssl().TLS_method());
  if (made == nullptr) fail("SSL_CTX_new");
  openssl().SSL_CTX_ctrl(made, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                         nullptr);
  openssl().SSL_CTX_ctrl(made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  // The suite must have the hash of the keys.
  if (openssl().SSL_CTX_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) != 1 ||
      openssl().SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") != 1 ||
      openssl().SSL_CTX_set_num_tickets(made, 0) != 1)
    fail("SSL_CTX_ctrl");
  openssl().SSL_CTX_set_psk_use_session_callback(made, use_key);
  openssl().SSL_CTX_set_psk_find_session_callback(made, find_key);
  return made;
}

BIO_METHOD* OpenSslSession::make_bio_method() {
  BIO_METHOD* const made = openssl().BIO_meth_new(BIO_TYPE_SOURCE_SINK, "beeline");
  if (made == nullptr) fail("BIO_meth_new");
  openssl().BIO_meth_set_read(made, read_bio);
  openssl().BIO_meth_set_write(made, write_bio);
  openssl().BIO_meth_set_ctrl(made, control_bio);
  return made;
}

int OpenSslSession::read_bio(BIO* bio, char* to, int bytes) {
  auto& self = *static_cast<OpenSslSession*>(openssl().BIO_get_data(bio));
  openssl().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  const std::size_t taken = std::min(static_cast<std::size_t>(bytes), self.end_ - self.begin_);
  if (taken == 0) {
    openssl().BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    return -1;
  }
  std::memcpy(to, self.input_.data() + self.begin_, taken);
  self.begin_ += taken;
  return static_cast<int>(taken);
}

int OpenSslSession::write_bio(BIO* bio, const char* from, int bytes) {
  auto& self = *static_cast<OpenSslSession*>(openssl().BIO_get_data(bio));
  const auto* const begin = reinterpret_cast<const std::byte*>(from);
  self.output_.insert(self.output_.end(), begin, begin + bytes);
  return bytes;
}

long OpenSslSession::control_bio(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

namespace {

/// A session of OpenSSL's that stands for a key; nullptr: OpenSSL has no memory.
SSL_SESSION* session_of(SSL* ssl, const TlsKey& key) {
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  SSL_SESSION* const made = openssl().SSL_SESSION_new();
  const SSL_CIPHER* const cipher = openssl().SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
  if (made != nullptr && cipher != nullptr &&
      openssl().SSL_SESSION_set1_master_key(made, key.data(), key.size()) == 1 &&
      openssl().SSL_SESSION_set_cipher(made, cipher) == 1 &&
      openssl().SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
    return made;
  openssl().SSL_SESSION_free(made);
  return nullptr;
}

}  // namespace

int OpenSslSession::use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
                            SSL_SESSION** session) {
  const OpenSslSession& self = of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(self.identity_.data());
  *bytes = self.identity_.size();
  *session = session_of(ssl, *self.key_);
  return *session != nullptr ? 1 : 0;
}

int OpenSslSession::find_key(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  OpenSslSession& self = of(ssl);
  *session = nullptr;
  if (bytes > most_identity_bytes) return 1;
  try {
    self.identity_.assign(reinterpret_cast<const char*>(identity), bytes);
    if (const std::optional<TlsKey> key = self.find_(self.identity_)) *session = session_of(ssl, *key);
    return 1;
  } catch (const std::exception&) {  // no exception may pass through OpenSSL
    return 0;
  }
}

void OpenSslSession::give_up(std::string reason) {
  failure_ = std::move(reason);
  output_.clear();
  sent_ = begin_ = end_ = 0;
}

void OpenSslSession::check(int result) {
  const int error = openssl().SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ) return;
  give_up(error == SSL_ERROR_ZERO_RETURN ? "the peer has ended TLS" : fmt::format("TLS: {}", take_error()));
}

bool OpenSslSession::shake_hands() {
  if (is_established_) return true;
  if (!failure_.empty()) return false;
  openssl().ERR_clear_error();
  const int result = openssl().SSL_do_handshake(ssl_);
  if (result != 1) check(result);
  // Without a common key a server must not answer, and neither end goes on.
  const bool has_key = openssl().SSL_session_reused(ssl_) == 1;
  if (failure_.empty() && !has_key && (result == 1 || (is_server_ && !output_.empty())))
    give_up("TLS: the peer does not use the key");
  is_established_ = failure_.empty() && result == 1;
  return is_established_;
}

std::size_t OpenSslSession::read(std::span<std::byte> to) {
  if (!shake_hands()) return 0;
  std::size_t total = 0;
  while (total < to.size() && failure_.empty()) {
    openssl().ERR_clear_error();
    const std::size_t most = std::min<std::size_t>(to.size() - total, INT32_MAX);
    const int got = openssl().SSL_read(ssl_, to.data() + total, static_cast<int>(most));
    if (got <= 0) {
      check(got);
      break;
    }
    total += static_cast<std::size_t>(got);
  }
  return total;
}

std::size_t OpenSslSession::write(std::span<const std::byte> from) {
  if (!shake_hands() || !failure_.empty() || from.empty()) return 0;
  if (++records_ > records_per_key_) {
    records_ = 1;
    if (const int result = openssl().SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED); result != 1) check(result);
  }
  openssl().ERR_clear_error();
  const std::size_t most = std::min(from.size(), tls_record_bytes);
  const int taken = openssl().SSL_write(ssl_, from.data(), static_cast<int>(most));
  if (taken <= 0) check(taken);
  return taken <= 0 ? 0 : static_cast<std::size_t>(taken);
}

void OpenSslSession::sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ != output_.size()) return;
  output_.clear();
  sent_ = 0;
}

}  // namespace

std::string tls_reason() {
  try {
    static_cast<void>(openssl());
    return {};
  } catch (const Error& error) {
    const std::string_view text(error.what());  // begins with its code
    return std::string(text.substr(text.find(": ") + 2));
  }
}

TlsKey derive_tls_key(std::string_view secret, std::string_view salt, std::string_view context) {
  std::string hash = "SHA256", ikm(secret), salted(salt), info(context);
  const OSSL_PARAM parameters[] = {OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.data(), hash.size()),
                                   OSSL_PARAM_octet_string(OSSL_KDF_PARAM_KEY, ikm.data(), ikm.size()),
                                   OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SALT, salted.data(), salted.size()),
                                   OSSL_PARAM_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
                                   OSSL_PARAM_END};
  EVP_KDF* const hkdf = openssl().EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  EVP_KDF_CTX* const derivation = hkdf == nullptr ? nullptr : openssl().EVP_KDF_CTX_new(hkdf);
  TlsKey key{};
  const bool is_derived =
      derivation != nullptr && openssl().EVP_KDF_derive(derivation, key.data(), key.size(), parameters) == 1;
  openssl().EVP_KDF_CTX_free(derivation);
  openssl().EVP_KDF_free(hkdf);
  if (!is_derived) fail("EVP_KDF_derive");
  return key;
}

std::unique_ptr<TlsSession> make_tls_client(std::string identity, const TlsKey& key, std::uint64_t records_per_key) {
  return std::make_unique<OpenSslSession>(std::move(identity), key, FindTlsKey(), records_per_key);
}

std::unique_ptr<TlsSession> make_tls_server(FindTlsKey find) {
  return std::make_unique<OpenSslSession>(std::string(), std::nullopt, std::move(find), std::uint64_t{1} << 22);
}

}  // namespace beeline::detail
