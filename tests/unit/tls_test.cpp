// SPDX-License-Identifier: Apache-2.0
// TLS sessions without sockets: an end without the key learns nothing, and recorded bytes cannot be used again.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/tls/session.hpp"

namespace beeline_test {

namespace {

using namespace beeline::detail;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Bytes take_output(TlsSession& from) {
  Bytes all(from.output().begin(), from.output().end());
  from.sent(all.size());
  return all;
}

/// Gives a session bytes as received from the network. Returns the bytes that it decrypts.
Bytes give(TlsSession& to, std::span<const std::byte> bytes) {
  Bytes all, some(1000);
  const auto read = [&] {
    do {
      const std::size_t got = to.read(some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
    } while (to.has_input());
  };
  read();
  while (!bytes.empty() && to.failure().empty()) {
    const std::span<std::byte> room = to.room();
    const std::size_t taken = std::min(room.size(), bytes.size());
    std::ranges::copy(bytes.first(taken), room.begin());
    to.received(taken);
    bytes = bytes.subspan(taken);
    read();
  }
  return all;
}

Bytes encrypt(TlsSession& by, const Bytes& text) {
  for (std::size_t done = 0; done < text.size();) {
    const std::size_t taken = by.write(std::span(text).subspan(done));
    if (taken == 0) break;
    done += taken;
  }
  return take_output(by);
}

const TlsKey a_key = {1, 2, 3};

std::unique_ptr<TlsSession> server_of(const std::string& identity, const TlsKey& key) {
  return make_tls_server(
      [=](const std::string& named) { return named == identity ? std::optional(key) : std::nullopt; });
}

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = tls_reason(); !why.empty()) GTEST_SKIP() << why;
    client_ = make_tls_client("one", a_key, 3);
    server_ = server_of("one", a_key);
  }
  /// Completes the handshake. `recorded_` has all bytes that the client has sent.
  void shake_hands() {
    for (int round = 0; round < 3; ++round) {
      static_cast<void>(give(*client_, take_output(*server_)));
      const Bytes sent = take_output(*client_);
      recorded_.push_back(sent);
      static_cast<void>(give(*server_, sent));
    }
    ASSERT_TRUE(client_->is_established()) << client_->failure() << server_->failure();
    ASSERT_TRUE(server_->is_established()) << server_->failure();
  }

  std::unique_ptr<TlsSession> client_, server_;
  std::vector<Bytes> recorded_;
};

TEST_F(Tls, CarriesBytesBothWaysAndChangesKeys) {
  EXPECT_EQ(0u, client_->write(bytes_of("too early")));
  shake_hands();
  EXPECT_EQ("one", server_->identity());
  for (const std::size_t length : {1u, 16384u, 100'000u}) {  // the last message's records use three keys
    Bytes text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<std::byte>(i % 251);
    const Bytes encrypted = encrypt(*client_, text);
    EXPECT_TRUE(text == give(*server_, encrypted)) << server_->failure();
    EXPECT_TRUE(text == give(*client_, encrypt(*server_, text))) << client_->failure();
  }
  const Bytes encrypted = encrypt(*client_, bytes_of("the secret text"));
  EXPECT_EQ(std::string::npos, text_of(encrypted).find("secret"));
  EXPECT_EQ("the secret text", text_of(give(*server_, encrypted)));
}

TEST_F(Tls, WithAnotherKeyOrNameHasNoAnswer) {
  for (const auto& [identity, key] : {std::pair("one", TlsKey{9}), std::pair("another", a_key)}) {
    const auto server = server_of("one", a_key), client = make_tls_client(identity, key);
    EXPECT_EQ("", text_of(give(*client, {})));
    EXPECT_EQ("", text_of(give(*server, take_output(*client))));
    EXPECT_NE("", server->failure());
    EXPECT_TRUE(server->output().empty()) << identity;
    EXPECT_EQ(0u, server->write(bytes_of("nor later")));
    EXPECT_FALSE(server->is_established() || client->is_established());
  }
}

TEST_F(Tls, OfStrangersHasNoAnswer) {
  // A hello without a key, like a browser's: TLS 1.2's version, one suite, no extension that matters here.
  Bytes hello = bytes_of(std::string("\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03", 11) + std::string(32, 'r') +
                         std::string("\x00\x00\x02\x13\x01\x01\x00", 7));
  for (const Bytes& stranger : {hello, bytes_of("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), Bytes(5000)}) {
    const auto server = server_of("one", a_key);
    EXPECT_EQ("", text_of(give(*server, stranger)));
    EXPECT_NE("", server->failure());
    EXPECT_TRUE(server->output().empty());
  }
  const auto server = server_of("one", a_key);
  static_cast<void>(give(*client_, {}));
  const Bytes all = take_output(*client_);
  static_cast<void>(give(*server, std::span(all).first(all.size() / 2)));
  EXPECT_EQ("", server->failure()) << "half a hello may go on";
  EXPECT_TRUE(server->output().empty());
}

/// A server without the key repeats the answer that a server with the key gave to an earlier client.
TEST_F(Tls, OfAServerWithoutTheKeyIsRefused) {
  static_cast<void>(give(*client_, {}));
  static_cast<void>(give(*server_, take_output(*client_)));
  const Bytes answer = take_output(*server_);
  ASSERT_FALSE(answer.empty());
  const auto other = make_tls_client("one", a_key);
  static_cast<void>(give(*other, {}));
  static_cast<void>(give(*other, answer));
  EXPECT_NE("", other->failure());
  EXPECT_FALSE(other->is_established());
}

TEST_F(Tls, ThatWasRecordedIsRefusedWhenPlayedAgain) {
  shake_hands();
  recorded_.push_back(encrypt(*client_, bytes_of("write 8 bytes")));
  EXPECT_EQ("write 8 bytes", text_of(give(*server_, recorded_.back())));
  const auto next = server_of("one", a_key);
  for (const Bytes& each : recorded_) EXPECT_EQ("", text_of(give(*next, each)));
  EXPECT_FALSE(next->is_established());
  EXPECT_NE("", next->failure());
  EXPECT_EQ("", text_of(give(*server_, recorded_.back()))) << "nor on the same connection";
  EXPECT_NE("", server_->failure());
}

TEST_F(Tls, WithAChangedByteIsRefused) {
  shake_hands();
  Bytes record = encrypt(*client_, bytes_of("write 8 bytes"));
  record.back() ^= std::byte{1};
  EXPECT_EQ("", text_of(give(*server_, record)));
  EXPECT_NE("", server_->failure());
  EXPECT_EQ(0u, server_->write(bytes_of("no more")));
}

TEST_F(Tls, KeysAreThoseOfRfc5869AndDependOnAll) {
  std::string salt, info;
  for (int i = 0; i <= 0x0c; ++i) salt += static_cast<char>(i);
  for (int i = 0xf0; i <= 0xf9; ++i) info += static_cast<char>(i);
  const TlsKey key = derive_tls_key(std::string(22, '\x0b'), salt, info);
  const TlsKey expected = {0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f,
                           0x64, 0xd0, 0x36, 0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a,
                           0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf};
  EXPECT_EQ(expected, key);
  EXPECT_NE(derive_tls_key("a", "b", "c"), derive_tls_key("a", "b", "d"));
  EXPECT_NE(derive_tls_key("a", "b", "c"), derive_tls_key("a", "", "c"));
  EXPECT_NE(derive_tls_key("a", "b", "c"), derive_tls_key("b", "b", "c"));
}

}  // namespace

}  // namespace beeline_test
