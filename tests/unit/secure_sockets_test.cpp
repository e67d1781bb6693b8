// SPDX-License-Identifier: Apache-2.0
// The transport `sockets` with TLS: several ranks in one thread, and intruders at a rank's port.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "runtime/socket.hpp"
#include "runtime/tcp_stream.hpp"
#include "transports/sockets/connection_keys.hpp"
#include "transports/sockets/socket_connection.hpp"
#include "transports/transport.hpp"

namespace beeline_test {

namespace {

using namespace beeline;
using detail::Deadline;
using detail::TcpStream;

constexpr std::int64_t generous_ns = 20'000'000'000;

/// Records the reports of a worker.
struct Reports final : WorkerEvents {
  void received(const NetworkMessage& message, std::span<const std::byte> payload) override {
    payloads[message.number].assign(payload.begin(), payload.end());
  }
  bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) override {
    parcels[message.number] = parcel;
    payloads[message.number].resize(bytes);
    return true;
  }
  void fetched(int, std::uint64_t number, bool is_there) override { is_fetched[number] = is_there; }
  void sent(std::uint64_t) override { ++sends; }
  void placed(int, std::uint64_t, bool) override {}
  void got(int, std::uint64_t, bool) override {}
  void lost(int peer, const std::string& reason) override { losses[peer] = reason; }
  void failed(const char* reason) noexcept override { ADD_FAILURE() << reason; }

  std::map<std::uint64_t, std::vector<std::byte>> payloads;  ///< by number
  std::map<std::uint64_t, void*> parcels;                    ///< that are announced
  std::map<std::uint64_t, bool> is_fetched;
  std::map<int, std::string> losses;
  int sends = 0;
};

constexpr int ranks = 3;

NetworkPlan plan_of(int rank) {
  NetworkPlan plan;
  plan.rank = rank;
  plan.node_of = {0, 1, 2}, plan.host_of = {0, 0, 0};
  plan.is_one_host = plan.is_secure = true;
  plan.world = 77, plan.token = "the token";
  return plan;
}

class SecureSockets : public ::testing::Test {
 protected:
  void SetUp() override {
    row_ = choose_transports("sockets").front().row;
    for (const std::string& why : {detail::tls_reason(), row_->reason()})
      if (!why.empty()) GTEST_SKIP() << why;
  }
  void open(int rank, const NetworkPlan& plan, const TransportSettings& settings = {}) {
    workers_[static_cast<std::size_t>(rank)] = row_->open(plan, settings, reports_[static_cast<std::size_t>(rank)]);
  }
  void open_all() {
    for (int rank = 0; rank < ranks; ++rank) open(rank, plan_of(rank));
  }
  void connect(int from, int to) { worker(from).connect(to, worker(to).address(), "a test"); }
  [[nodiscard]] TransportWorker& worker(int rank) { return *workers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Reports& reports(int rank) { return reports_[static_cast<std::size_t>(rank)]; }

  template <class Done>
  void work_until(Done done) {
    for (const Deadline deadline(generous_ns); !done();) {
      ASSERT_FALSE(deadline.passed());
      for (const auto& each : workers_)
        if (each) each->progress();
    }
  }
  void send(int from, int to, std::uint64_t number, std::span<const std::byte> payload = {}) {
    NetworkMessage message{};
    message.number = number, message.from = static_cast<std::uint32_t>(from);
    worker(from).send(to, message, payload, number, nullptr, DeviceKind::host);
  }
  /// Connects two ranks, and checks that each can send to the other.
  void expect_connection(int from, int to) {
    connect(from, to);
    send(from, to, 1000);
    send(to, from, 1001);
    work_until([&] { return reports(to).payloads.contains(1000) && reports(from).payloads.contains(1001); });
    EXPECT_TRUE(reports(from).losses.empty() && reports(to).losses.empty());
    reports(to).payloads.erase(1000), reports(from).payloads.erase(1001);
  }

  // An intruder at the port of a rank, whose secret the intruder knows.

  [[nodiscard]] std::vector<std::byte> secret_of(int rank) {
    const auto address = worker(rank).address();
    return {address.begin(), address.begin() + 16};
  }
  [[nodiscard]] TcpStream intrude(int rank, std::unique_ptr<detail::TlsSession> tls = nullptr) {
    const auto address = worker(rank).address();
    const std::string text = text_in(std::span(address).subspan(16));
    const std::string port = text.substr(0, text.find(' '));
    return TcpStream(detail::connect_tcp("127.0.0.1:" + port, Deadline(generous_ns)), std::move(tls));
  }
  [[nodiscard]] std::vector<std::byte> introduction(int from, int to) {
    std::vector<std::byte> all = secret_of(to);
    for (const int each : {from, to}) {
      const auto bytes = std::as_bytes(std::span(&each, 1));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  /// The bytes with which the rank answers `bytes` until it closes the connection.
  std::string answer_to(TcpStream stream, std::span<const std::byte> bytes) {
    std::string answer;
    bool is_closed = false;
    work_until([&] {
      if (stream.is_ready() && !bytes.empty()) {
        const ssize_t sent = stream.write(bytes);
        bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
      }
      std::array<std::byte, 1000> some;
      const ssize_t got = stream.read(some);
      if (got > 0) answer += text_in(std::span(some).first(static_cast<std::size_t>(got)));
      is_closed = got == 0 || (got < 0 && errno != EAGAIN);
      return is_closed;
    });
    return answer;
  }

  const TransportRow* row_ = nullptr;
  std::array<Reports, ranks> reports_;
  std::array<std::unique_ptr<TransportWorker>, ranks> workers_;
};

TEST_F(SecureSockets, CarryShortAndLongPayloads) {
  open(0, plan_of(0));
  open(1, plan_of(1), {{"delay_us", "200"}, {"reorder", "1"}});  // faults are injected above TLS
  open(2, plan_of(2));
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(2, 0)}) {
    connect(std::min(from, to), std::max(from, to));
    std::uint64_t number = 0;
    std::vector<std::vector<std::byte>> payloads;
    for (const std::size_t bytes : {0u, 8u, 16'300u, 65'536u, 65'537u, 9'000'000u}) {
      payloads.emplace_back(bytes);
      for (std::size_t i = 0; i < bytes; ++i) payloads.back()[i] = static_cast<std::byte>(i % 253);
    }
    for (const auto& each : payloads) send(from, to, ++number, each);
    work_until([&, to = to] { return reports(to).payloads.size() == number; });
    for (const auto& [each, parcel] : reports(to).parcels)
      worker(to).fetch(from, parcel, reports(to).payloads[each], each, DeviceKind::host);
    work_until([&, to = to] { return reports(to).is_fetched.size() == 2; });
    for (std::uint64_t each = 1; each <= number; ++each)
      EXPECT_TRUE(payloads[each - 1] == reports(to).payloads[each]) << "message " << each;
    reports(to).payloads.clear();
  }
}

/// Reads all that has arrived. Returns the number of bytes.
std::size_t drain(TcpStream& stream) {
  std::vector<std::byte> some(1 << 20);
  std::size_t total = 0;
  for (ssize_t got = 0; (got = stream.read(some)) > 0;) total += static_cast<std::size_t>(got);
  return total;
}

TEST_F(SecureSockets, GoOnWithTheQueueWhenAReadHasSentWhatWaited) {
  std::array<int, 2> ends{};
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()));
  const std::array<std::byte, 16> secret{};
  const NetworkPlan near_plan = plan_of(0), far_plan = plan_of(1);
  TcpStream far(FileDescriptor(ends[1]), accepting_session(far_plan, secret));
  SocketFaults no_faults({});
  SocketConnection near(1, reports(0), no_faults);
  near.open(TcpStream(FileDescriptor(ends[0]), dialing_session(near_plan, 1, secret)), {});
  for (int step = 0; step < 10 && !far.is_ready(); ++step) {
    EXPECT_EQ(0u, drain(far));
    near.read();
  }
  ASSERT_TRUE(far.is_ready());

  const std::vector<std::byte> payload(most_eager_bytes);
  NetworkMessage message{};
  std::uint64_t messages = 0;
  for (int more = 0; more < 3 && messages < 1000; more += near.is_blocked() ? 1 : 0) {
    message.number = ++messages;
    near.send(message, payload, messages, nullptr);
  }
  ASSERT_TRUE(near.is_blocked());
  std::size_t received = drain(far);
  const SocketFrame frame{FrameKind::message, 0, 0, 0};
  ASSERT_EQ(static_cast<ssize_t>(sizeof frame + sizeof message),
            far.write(std::as_bytes(std::span(&frame, 1)), std::as_bytes(std::span(&message, 1))));
  near.read();  // before anything reports that the socket has room
  EXPECT_TRUE(reports(0).payloads.contains(messages));
  const std::size_t all = messages * (sizeof frame + sizeof message + payload.size());
  for (std::size_t step = 0; step < all && received < all; ++step) {
    received += drain(far);
    if (!near.is_blocked()) break;
    near.write();
  }
  EXPECT_EQ(all, received + drain(far));
}

TEST_F(SecureSockets, CloseConnectionsWithoutTheKeyAndSayNothing) {
  open_all();
  const NetworkPlan first = plan_of(0);
  NetworkPlan other_token = first, other_world = first;
  other_token.token = "another";
  other_world.world = 78;
  const auto greeting = introduction(0, 2);
  EXPECT_EQ("", answer_to(intrude(2), greeting)) << "without TLS";
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(other_token, 2, secret_of(2))), greeting));
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(other_world, 2, secret_of(2))), greeting));
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(first, 2, secret_of(1))), greeting)) << "the secret of another";
  EXPECT_EQ("", answer_to(intrude(1, dialing_session(first, 2, secret_of(2))), introduction(0, 1)));
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(plan_of(1), 2, secret_of(2))), greeting)) << "rank 1 as rank 0";
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(first, 2, secret_of(2))), introduction(0, 1)));
  const TcpStream half = intrude(2), silent = intrude(2);
  EXPECT_EQ(20, ::send(half.descriptor(), "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03rrrrrrrrr", 20, MSG_NOSIGNAL));
  expect_connection(0, 2);
  expect_connection(1, 2);
  // An intruder that knows the key and the secret does not replace the connection of a rank.
  EXPECT_EQ("", answer_to(intrude(2, dialing_session(first, 2, secret_of(2))), greeting));
  send(0, 2, 5);
  work_until([&] { return reports(2).payloads.contains(5); });
}

TEST_F(SecureSockets, AndPlainOnesDoNotConnect) {
  for (const bool is_first_secure : {true, false}) {
    for (int rank = 0; rank < 2; ++rank) {
      NetworkPlan plan = plan_of(rank);
      plan.is_secure = (rank == 0) == is_first_secure;
      open(rank, plan);
    }
    connect(0, 1);
    send(0, 1, 1);
    work_until([&] { return reports(0).losses.contains(1); });
    const std::string why = reports(0).losses[1];
    EXPECT_TRUE(why.starts_with("Connection reset by ")) << why;
    EXPECT_EQ(is_first_secure, why.ends_with(" before TLS had keys: do BEELINE_SECURE and BEELINE_TOKEN differ?"))
        << why;
    EXPECT_TRUE(reports(1).payloads.empty());
    reports(0).losses.clear();
  }
}

TEST_F(SecureSockets, AreTheOnlyTransportOfASecureWorld) {
  EXPECT_STREQ("sockets", choose_transports("", true).front().row->name);
  EXPECT_STREQ("sockets", choose_transports("sockets:delay_us=5", true).front().row->name);
  for (const char* list : {"ucx", "sockets,ucx"}) try {
      static_cast<void>(choose_transports(list, true));
      ADD_FAILURE() << list;
    } catch (const Error& error) {
      EXPECT_EQ(Status::invalid_argument, error.code());
      EXPECT_NE(std::string::npos,
                std::string(error.what()).find("ucx authenticates no connection and encrypts nothing; sockets does"));
    }
}

}  // namespace

}  // namespace beeline_test
