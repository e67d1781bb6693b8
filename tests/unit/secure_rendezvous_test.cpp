// SPDX-License-Identifier: Apache-2.0
// The rendezvous with TLS: the token is not sent, strangers get no answer, and replayed bytes let no client join.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <optional>
#include <thread>

#include "bootstrap_worlds.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"
#include "runtime/tcp_stream.hpp"
#include "runtime/tls/rendezvous_keys.hpp"

namespace beeline::tests {

namespace {

using detail::Deadline;
using detail::Frame;
using detail::FrameReader;
using detail::FrameType;
using detail::TcpStream;

void send_all(int socket, std::string_view text) {
  EXPECT_EQ(static_cast<ssize_t>(text.size()), ::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
}

std::string_view text_of(const detail::EncodedFrame& frame) {
  return {reinterpret_cast<const char*>(frame->data()), frame->size()};
}

/// A rank connects to `address()` instead of the server's address; all bytes in both directions are recorded.
class Recorder {
 public:
  explicit Recorder(std::string server) : server_(std::move(server)), thread_([this] { pass_on(); }) {}
  ~Recorder() { wait(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  [[nodiscard]] std::string address() const { return detail::local_endpoint(listener_.get()); }

  /// Waits until one end has closed.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

  std::string to_server, to_rank;

 private:
  void pass_on() {
    const Deadline deadline(generous_ns);
    if (detail::wait_ready(listener_.get(), POLLIN, -1, deadline) != detail::Ready::yes) return;
    const FileDescriptor rank(::accept(listener_.get(), nullptr, nullptr));
    const FileDescriptor server = detail::connect_tcp(server_, deadline);
    std::array<pollfd, 2> ends = {{{rank.get(), POLLIN, 0}, {server.get(), POLLIN, 0}}};
    std::vector<char> some(1 << 20);
    while (::poll(ends.data(), ends.size(), 20'000) > 0)
      for (const std::size_t from : {0u, 1u}) {
        if (ends[from].revents == 0) continue;
        const ssize_t got = ::recv(ends[from].fd, some.data(), some.size(), 0);
        if (got <= 0) return;
        (from == 0 ? to_server : to_rank).append(some.data(), static_cast<std::size_t>(got));
        for (ssize_t sent = 0; sent < got;) {
          static_cast<void>(detail::wait_ready(ends[1 - from].fd, POLLOUT, -1, deadline));
          const ssize_t more =
              ::send(ends[1 - from].fd, some.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
          if (more < 0 && errno != EAGAIN) return;
          sent += std::max<ssize_t>(more, 0);
        }
      }
  }

  const FileDescriptor listener_ = detail::listen_tcp("127.0.0.1");
  std::string server_;
  std::thread thread_;
};

class SecureRendezvous : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = detail::tls_reason(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace(RendezvousServer::Options{2, token_, "127.0.0.1", true});
  }
  [[nodiscard]] Config config(int rank) const {
    Config made = config_for(*server_, token_, rank, 2);
    made.secure = true;
    return made;
  }
  [[nodiscard]] static std::future<std::unique_ptr<Bootstrap>> join(const Config& config) {
    return std::async(std::launch::async, [config] { return join_world(config); });
  }
  /// The world of two can still be made, and no failure was reported.
  void expect_world() {
    auto first = join(config(0)), second = join(config(1));
    run_threads(2, [&](int rank) { (rank == 0 ? first : second).get()->barrier(generous_ns); });
    EXPECT_FALSE(server_->failure());
  }
  [[nodiscard]] TcpStream connect(std::unique_ptr<detail::TlsSession> tls = nullptr) const {
    return TcpStream(detail::connect_tcp(server_->address(), Deadline(generous_ns)), std::move(tls));
  }

  const std::string token_ = make_token();
  std::optional<RendezvousServer> server_;
};

TEST_F(SecureRendezvous, ShowsNothingAndARecordAdmitsNobody) {
  const std::string mine = "the contribution of rank 1";
  const std::vector<std::byte> large(3'000'000, std::byte{7});
  Recorder recorder(server_->address());
  Config recorded = config(1);
  recorded.rendezvous = recorder.address();
  auto first = join(config(0)), second = join(recorded);
  run_threads(2, [&](int rank) {
    const std::unique_ptr<Bootstrap> own = (rank == 0 ? first : second).get();
    const auto all = own->allgather(rank == 0 ? std::span(large) : std::as_bytes(std::span(mine)), generous_ns);
    EXPECT_TRUE(all[0] == large);
    EXPECT_EQ(mine, std::string(reinterpret_cast<const char*>(all[1].data()), all[1].size()));
  });
  recorder.wait();
  for (const std::string& text : {recorder.to_server, recorder.to_rank}) {
    EXPECT_GT(text.size(), 500u);
    for (const std::string& secret : {token_, mine}) EXPECT_EQ(text.npos, text.find(secret));
    EXPECT_EQ(text.npos, text.substr(0, 65'536).find("BEEL"));  // megabytes of ciphertext have it by chance
  }
  const TcpStream again = connect();
  send_all(again.descriptor(), recorder.to_server);
  EXPECT_LT(read_to_end(again.descriptor()).size(), 1000u) << "it answers the hello alone";
  expect_world();
}

TEST_F(SecureRendezvous, AnswersNoStranger) {
  const detail::EncodedFrame hello =
      detail::encode({.type = FrameType::hello, .rank = 1, .number = 2, .sequence = 1}, token_);
  for (const std::string_view text : {text_of(hello), std::string_view("GET / HTTP/1.1\r\n\r\n")}) {
    const TcpStream stranger = connect();
    send_all(stranger.descriptor(), text);
    EXPECT_EQ("", read_to_end(stranger.descriptor()));
  }
  TcpStream other_key = connect(detail::greet_rendezvous("another token", 1, 2));
  EXPECT_EQ(-1, other_key.read({}));  // sends TLS's hello
  EXPECT_EQ("", read_to_end(other_key.descriptor()));
  // Half of TLS's hello, then nothing: it gets no answer, and hinders no other client.
  const std::unique_ptr<detail::TlsSession> session = detail::greet_rendezvous(token_, 1, 2);
  static_cast<void>(session->write({}));
  const auto half = session->output().first(session->output().size() / 2);
  const TcpStream slow = connect();
  send_all(slow.descriptor(), {reinterpret_cast<const char*>(half.data()), half.size()});
  expect_world();
  char byte = 0;
  EXPECT_EQ(-1, ::recv(slow.descriptor(), &byte, 1, MSG_DONTWAIT));
}

TEST_F(SecureRendezvous, RefusesARankWithAnothersKey) {
  TcpStream stream = connect(detail::greet_rendezvous(token_, 1, 2));
  const Deadline deadline(generous_ns);
  const detail::EncodedFrame hello = detail::encode({.type = FrameType::hello, .rank = 0, .number = 2, .sequence = 1});
  FrameReader reader(1000);
  std::size_t sent = 0;
  FrameReader::Result result;
  while ((result = reader.read(stream)) == FrameReader::Result::would_block) {
    ASSERT_TRUE(!stream.is_ready() || detail::write_some(stream, *hello, sent));
    ASSERT_EQ(detail::Ready::yes, detail::wait_ready(stream.descriptor(), POLLIN, -1, deadline));
  }
  ASSERT_EQ(FrameReader::Result::frame, result);
  const Frame answer = reader.take();
  EXPECT_EQ(FrameType::refuse, answer.header.type);
  EXPECT_EQ("it introduces itself as rank 0 of 2, by the key of rank 1 of 2", answer.text());
  expect_world();
}

TEST_F(SecureRendezvous, SaysWhatARankLacks) {
  Config other_token = config(1), no_token = config(1), plain = config(1), other_size = config(1);
  other_token.token.back() ^= 1;
  no_token.token.clear();
  plain.secure = false;
  other_size.size = 3;
  for (Config* each : {&other_token, &plain}) each->deadline_ns = 200'000'000;  // they retry for so long
  const RendezvousServer plain_server({2, token_});
  Config plain_rendezvous = config(1);
  plain_rendezvous.rendezvous = plain_server.address();
  const std::vector<std::tuple<Config, Status, std::string>> cases = {
      {other_token, Status::unreachable, "or another BEELINE_TOKEN"},
      {no_token, Status::invalid_argument, "BEELINE_SECURE=1 derives keys from BEELINE_TOKEN, which is not set"},
      {plain, Status::unreachable, "or expects BEELINE_SECURE=1"},
      {other_size, Status::invalid_argument, "size 3, but the world has 2 ranks"},
      {plain_rendezvous, Status::unreachable, "is BEELINE_SECURE set for it, too?"}};
  for (const auto& [wrong, status, reason] : cases) {
    const Error error = error_of([&] { static_cast<void>(join_world(wrong)); });
    EXPECT_EQ(status, error.code()) << error.what();
    EXPECT_TRUE(mentions(error, reason)) << error.what();
  }
  const ShareText alone = [](const std::string& text) { return text; };
  EXPECT_EQ(Status::invalid_argument,
            error_of([&] { static_cast<void>(join_world(no_token, "127.0.0.1", alone)); }).code());
  expect_world();
}

TEST_F(SecureRendezvous, SharesTheAddressAlone) {
  std::promise<std::string> address;
  std::shared_future<std::string> shared = address.get_future().share();
  run_threads(2, [&](int rank) {
    Config own = config(rank);
    own.rendezvous.clear();
    const auto world = join_world(own, "127.0.0.1", [&](const std::string& text) {
      if (rank == 0) address.set_value(text);
      return shared.get();
    });
    world->barrier(generous_ns);
  });
  EXPECT_TRUE(shared.get().starts_with("127.0.0.1:"));
  EXPECT_EQ(std::string::npos, shared.get().find(token_));
}

}  // namespace

}  // namespace beeline::tests
