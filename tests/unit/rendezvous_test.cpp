// SPDX-License-Identifier: Apache-2.0
/// @file
/// The rendezvous server with clients that it must refuse, and ends of worlds that it must report.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "bootstrap_worlds.hpp"
#include "runtime/rendezvous_server.hpp"
#include "runtime/socket.hpp"

namespace beeline::tests {

namespace {

FileDescriptor connect_to(const std::string& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)), 0);
  return socket;
}

/// The protocol's header, defined again: a change of the format must be noticed.
struct Header {
  std::uint32_t magic = 0x4c454542;
  std::uint16_t version = 2, type = 0;
  std::int32_t rank = -1, number = 0;
  std::uint64_t sequence = 0;
  std::int64_t deadline_ns = 0;
  std::uint64_t bytes = 0;
  std::int32_t noticed_by = -1, unused = 0;
};
static_assert(sizeof(Header) == 48);

constexpr std::uint16_t hello_frame = 1, contribute_frame = 2, goodbye_frame = 4, welcome_frame = 5;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Established connections of this machine from or to `port`, and how many of them the system probes when idle.
struct Connections {
  int all = 0, probed = 0;
};

Connections connections_of(int port) {
  constexpr unsigned established = 1, keepalive_timer = 2;
  std::ifstream table("/proc/net/tcp");
  Connections found;
  std::set<std::pair<unsigned, unsigned>> ends;  // a line may appear twice if others connect meanwhile
  for (std::string line; std::getline(table, line);) {
    unsigned local = 0, remote = 0, state = 0, timer = 0;
    if (std::sscanf(line.c_str(), "%*d: %*x:%x %*x:%x %x %*x:%*x %x:", &local, &remote, &state, &timer) != 4) continue;
    if (state != established || (static_cast<int>(local) != port && static_cast<int>(remote) != port)) continue;
    if (!ends.emplace(local, remote).second) continue;
    ++found.all;
    found.probed += timer == keepalive_timer ? 1 : 0;
  }
  return found;
}

/// A world of two ranks: rank 0 has joined and waits for rank 1.
class Rendezvous : public ::testing::Test {
 protected:
  [[nodiscard]] Config config(int rank) const { return config_for(server, token, rank, 2); }
  [[nodiscard]] std::future<std::unique_ptr<Bootstrap>> join(int rank) const {
    return std::async(std::launch::async, [this, rank] { return join_world(config(rank)); });
  }
  /// Joins as `rank` without a Bootstrap: returns the connection once the server has welcomed it.
  [[nodiscard]] FileDescriptor join_by_hand(int rank) const {
    FileDescriptor socket = connect_to(server.address());
    say_hello(socket.get(), rank);
    Header welcome;
    EXPECT_EQ(::recv(socket.get(), &welcome, sizeof(welcome), MSG_WAITALL), static_cast<ssize_t>(sizeof(welcome)));
    EXPECT_EQ(welcome.type, welcome_frame);
    return socket;
  }
  void say_hello(int socket, int rank) const {
    const Header hello{.type = hello_frame, .rank = rank, .number = 2, .sequence = 1, .bytes = token.size()};
    EXPECT_EQ(::send(socket, &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
    EXPECT_EQ(::send(socket, token.data(), token.size(), 0), static_cast<ssize_t>(token.size()));
  }
  static void contribute_nothing(int socket) {
    const Header contribution{.type = contribute_frame, .deadline_ns = generous_ns};
    EXPECT_EQ(::send(socket, &contribution, sizeof(contribution), 0), static_cast<ssize_t>(sizeof(contribution)));
  }

  const std::string token = make_token();
  RendezvousServer server{{2, token}};
};

TEST_F(Rendezvous, RefusesStrangersAndTheWorldGoesOn) {
  auto first = join(0);
  Config wrong_token = config(1), wrong_size = config(1), no_rank = config(1), no_token = config(1);
  wrong_token.token.back() ^= 1;
  wrong_size.size = 3;
  no_rank.rank = 2;
  no_token.token.clear();
  const std::vector<std::pair<Config, std::string>> cases = {{wrong_token, "wrong token"},
                                                             {wrong_size, "size 3, but the world has 2"},
                                                             {no_rank, "rank 2 is not in a world of 2"},
                                                             {no_token, "wrong token"}};
  for (const auto& [wrong, reason] : cases) {
    const Error error = error_of([&] { (void)join_world(wrong); });
    EXPECT_EQ(error.code(), Status::invalid_argument);
    EXPECT_TRUE(mentions(error, reason)) << error.what();
    EXPECT_FALSE(mentions(error, token)) << "the token is never shown";
  }
  auto second = join(1);
  EXPECT_EQ(first.get()->rank(), 0);
  EXPECT_EQ(second.get()->rank(), 1);
  EXPECT_FALSE(server.failure());
}

TEST_F(Rendezvous, RefusesARankThatIsTaken) {
  auto first = join(0), second = join(1);
  const auto zero = first.get(), one = second.get();
  const FileDescriptor other = connect_to(server.address());
  say_hello(other.get(), 0);  // from a process other than rank 0's: their numbers differ
  EXPECT_NE(read_to_end(other.get()).find("rank 0 has already joined, from another process"), std::string::npos);
  EXPECT_FALSE(server.failure());
}

TEST_F(Rendezvous, RanksMayMakeTwoWorldsAtOnce) {
  auto first = join(0), second = join(1);
  auto zero = first.get(), one = second.get();
  first = join(0), second = join(1);
  const auto next_zero = first.get(), next_one = second.get();
  run_threads(2, [&](int rank) {
    Bootstrap &old = rank == 0 ? *zero : *one, &next = rank == 0 ? *next_zero : *next_one;
    for (int round = 0; round < 3; ++round)
      for (Bootstrap* world : {&next, &old}) {
        const auto mine = static_cast<std::byte>(rank + 10 * round + (world == &old ? 100 : 0));
        const auto all = world->allgather({&mine, 1}, generous_ns);
        for (int other = 0; other < 2; ++other)
          EXPECT_EQ(all[static_cast<std::size_t>(other)].front(),
                    static_cast<std::byte>(other + 10 * round + (world == &old ? 100 : 0)));
      }
  });
  zero->abort("only this one");
  EXPECT_EQ(error_of([&] { one->barrier(generous_ns); }).code(), Status::aborted);
  run_threads(2, [&](int rank) { (rank == 0 ? *next_zero : *next_one).barrier(generous_ns); });
}

TEST_F(Rendezvous, ADeathEndsEveryWorldOfTheRank) {
  auto first = join(0);
  const FileDescriptor one = join_by_hand(1);
  contribute_nothing(one.get());
  const auto zero = first.get();
  auto second = join(0);
  join_by_hand(1).reset();
  for (const Error& error : {error_of([&] { (void)second.get(); }), error_of([&] { zero->barrier(generous_ns); })}) {
    EXPECT_EQ(error.code(), Status::peer_died);
    EXPECT_TRUE(mentions(error, "rank 1 ended without leaving the world")) << error.what();
  }
}

TEST_F(Rendezvous, DropsGarbageAndSilenceAndTheWorldGoesOn) {
  auto first = join(0);
  const FileDescriptor garbage = connect_to(server.address()), silent = connect_to(server.address());
  const std::string request = "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: everything\r\n\r\n";
  ASSERT_EQ(::send(garbage.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  EXPECT_NE(read_to_end(garbage.get()).find("not a frame of this protocol"), std::string::npos);
  auto second = join(1);
  (void)first.get();
  (void)second.get();
  EXPECT_FALSE(server.failure());
}

/// A machine that vanishes closes no connection: only the system's probes of idle connections detect that.
TEST_F(Rendezvous, IdleConnectionsAreProbed) {
  auto first = join(0), second = join(1);
  const auto zero = first.get(), one = second.get();
  const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
  Connections found = connections_of(port);
  if (found.all == 0) GTEST_SKIP() << "the system shows no connections in /proc/net/tcp";
  for (int look = 0; look < 100 && found.probed < 4; ++look) {  // the last frames must be acknowledged first
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    found = connections_of(port);
  }
  EXPECT_EQ(found.all, 4) << "two ends of two connections";
  EXPECT_EQ(found.probed, 4);
}

TEST_F(Rendezvous, ARankThatNeverJoinsIsNamedAtTheDeadline) {
  Config impatient = config(0);
  impatient.deadline_ns = 250'000'000;
  const Stopwatch stopwatch;
  const Error error = error_of([&] { (void)join_world(impatient); });
  stopwatch.expect_deadline(impatient.deadline_ns);
  EXPECT_EQ(error.code(), Status::deadline);
  EXPECT_TRUE(mentions(error, "rank 1 never joined")) << error.what();
}

TEST_F(Rendezvous, ARankThatHasEndedBeforeItJoinedIsNotWaitedFor) {
  auto first = join(0);
  server.expect_no_more(1);
  const Error error = error_of([&] { (void)first.get(); });
  EXPECT_EQ(error.code(), Status::peer_died);
  EXPECT_TRUE(mentions(error, "rank 1 ended before it joined the world")) << error.what();
  EXPECT_TRUE(server.is_missed(1));
  EXPECT_FALSE(server.is_missed(0));
}

TEST_F(Rendezvous, OfTooManySilentConnectionsTheOldestAreDroppedAndRanksJoin) {
  constexpr int count = 1300;
  if (!allow_open_files(2 * count + 200)) GTEST_SKIP() << "the system allows too few open files";
  auto first = join(0);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < count; ++i) silent.push_back(connect_to(server.address()));
  auto second = join(1);
  EXPECT_EQ(first.get()->rank(), 0);
  EXPECT_EQ(second.get()->rank(), 1);
  EXPECT_EQ(read_to_end(silent.front().get()), "");
  char byte = 0;
  EXPECT_EQ(::recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "the newest is open";
}

/// Passes data between two sockets in both directions, until one closes.
void relay(int one, int other) {
  std::array<pollfd, 2> ends = {{{one, POLLIN, 0}, {other, POLLIN, 0}}};
  for (std::array<char, 4096> some{}; ::poll(ends.data(), ends.size(), -1) > 0;)
    for (const std::size_t from : {0u, 1u}) {
      if (ends[from].revents == 0) continue;
      const ssize_t got = ::recv(ends[from].fd, some.data(), some.size(), 0);
      if (got <= 0) return;
      EXPECT_EQ(got, ::send(ends[1 - from].fd, some.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL));
    }
}

TEST_F(Rendezvous, ARankWhoseConnectionIsDroppedConnectsAgain) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof place;
  ASSERT_EQ(0, ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&place), bytes));
  ASSERT_EQ(0, ::listen(listener.get(), 4));
  ASSERT_EQ(0, ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &bytes));
  auto first = join(0);
  std::thread proxy([&] {
    for (int drops = 0; drops < 2; ++drops) FileDescriptor(::accept(listener.get(), nullptr, nullptr));
    const FileDescriptor client(::accept(listener.get(), nullptr, nullptr)), behind = connect_to(server.address());
    relay(client.get(), behind.get());
  });
  Config dropped = config(1);
  dropped.rendezvous = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
  auto one = join_world(dropped);
  EXPECT_EQ(1, one->rank());
  const auto zero = first.get();
  std::thread leaving([&] { zero->leave(); });
  one->leave();
  one.reset();
  leaving.join();
  proxy.join();
  EXPECT_FALSE(server.failure());
}

TEST_F(Rendezvous, OutOfDescriptorsTheServerWaitsForOne) {
  constexpr rlim_t few = 60;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{few, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<FileDescriptor> all;
  do all.emplace_back(::dup(STDIN_FILENO));
  while (all.back());
  all.resize(all.size() - 2);
  const FileDescriptor rank = connect_to(server.address());
  say_hello(rank.get(), 0);
  pollfd set{rank.get(), POLLIN, 0};
  const std::clock_t used = std::clock();
  EXPECT_EQ(::poll(&set, 1, 400), 0);
  EXPECT_LT(std::clock() - used, CLOCKS_PER_SEC / 4) << "it does not spin";
  all.clear();
  Header welcome;
  EXPECT_EQ(::recv(rank.get(), &welcome, sizeof(welcome), MSG_WAITALL), static_cast<ssize_t>(sizeof(welcome)));
  EXPECT_EQ(welcome.type, welcome_frame);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(Rendezvous, RanksMayMeetAgainAfterTheyLeft) {
  for (int world = 0; world < 3; ++world) {
    auto first = join(0), second = join(1);
    const auto zero = first.get(), one = second.get();
  }
  EXPECT_FALSE(server.failure());
}

TEST_F(Rendezvous, WorldsThatFollowEachOtherDoNotMix) {
  auto first = join(0), second = join(1);
  const auto zero = first.get();
  second.get().reset();
  const FileDescriptor next = join_by_hand(1);
  contribute_nothing(next.get());
  const Error error = error_of([&] { zero->barrier(generous_ns); });
  EXPECT_EQ(error.code(), Status::peer_died);
  EXPECT_TRUE(mentions(error, "rank 1 left the world early, after an error; look for it in the output of rank 1"))
      << error.what();
}

TEST_F(Rendezvous, AConnectionThatClosesWithoutGoodbyeIsADeath) {
  auto zero = join(0);
  join_by_hand(1).reset();
  const Error error = error_of([&] { (void)zero.get(); });
  EXPECT_EQ(error.code(), Status::peer_died);
  EXPECT_TRUE(mentions(error, "rank 1 ended without leaving the world")) << error.what();
  pollfd failed{server.failure_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&failed, 1, 5000), 1);
  ASSERT_TRUE(server.failure());
  EXPECT_EQ(server.failure()->culprit, 1);
}

TEST_F(Rendezvous, TheLaunchersAbortReachesRanksAndLatecomers) {
  auto first = join(0), second = join(1);
  auto zero = first.get(), one = second.get();
  std::promise<std::string> told;
  std::string all;
  one->on_abort([&](int culprit, const std::string& reason) {
    all += std::to_string(culprit) + reason + ".";
    if (culprit == 1) told.set_value(all);
  });
  server.abort(0, "rank 0 was killed");
  server.abort(1, "a later failure");
  server.abort(0, "the same again");
  EXPECT_EQ(told.get_future().get(), "0rank 0 was killed.1a later failure.");
  EXPECT_EQ(error_of([&] { one->barrier(generous_ns); }).code(), Status::peer_died);
  one.reset();
  const Error error = error_of([&] { (void)join_world(config(1)); });
  EXPECT_EQ(error.code(), Status::peer_died);
  EXPECT_TRUE(mentions(error, "rank 0 was killed")) << error.what();
}

/// A rank also closes with unread frames if it has waited too long for the server, as when hundreds leave at once.
TEST(RendezvousConnection, HearsTheGoodbyeOfAClientThatHasClosedWithNewsUnread) {
  const FileDescriptor listener = detail::listen_tcp("127.0.0.1");
  FileDescriptor client = connect_to(detail::local_endpoint(listener.get()));
  detail::Connection connection(
      detail::TcpStream(FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK))));
  const detail::EncodedFrame news = detail::encode({.type = detail::FrameType::left, .rank = 0});
  connection.send(news);
  pollfd readable{client.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 5000), 1);
  const Header goodbye{.type = goodbye_frame};
  EXPECT_EQ(::send(client.get(), &goodbye, sizeof(goodbye), 0), static_cast<ssize_t>(sizeof(goodbye)));
  client.reset();
  pollfd closed{connection.stream.descriptor(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&closed, 1, 5000), 1);
  connection.send(news);
  EXPECT_FALSE(connection.broken);
  EXPECT_FALSE(connection.sending());
  ASSERT_EQ(connection.reader.read(connection.stream), detail::FrameReader::Result::frame);
  EXPECT_EQ(connection.reader.take().header.type, detail::FrameType::goodbye);
  EXPECT_EQ(connection.reader.read(connection.stream), detail::FrameReader::Result::closed);
}

TEST(RendezvousServer, ItsEndFreesTheRanks) {
  const std::string token = make_token();
  auto server = std::make_unique<RendezvousServer>(RendezvousServer::Options{1, token});
  const auto bootstrap = join_world(config_for(*server, token, 0, 1));
  std::promise<int> culprit;
  bootstrap->on_abort([&](int rank, const std::string&) { culprit.set_value(rank); });
  server.reset();
  EXPECT_EQ(culprit.get_future().get(), -1);
  EXPECT_EQ(error_of([&] { bootstrap->barrier(generous_ns); }).code(), Status::peer_died);
  bootstrap->abort("nobody hears it");
}

TEST(RendezvousServer, WhereNobodyListensIsUnreachable) {
  Config config;
  {
    const RendezvousServer gone({1, "secret"});
    config.rendezvous = gone.address();
  }
  config.token = "secret";
  const Error error = error_of([&] { (void)join_world(config); });
  EXPECT_EQ(error.code(), Status::unreachable);
  EXPECT_TRUE(mentions(error, config.rendezvous)) << error.what();
  for (const char* address : {"", "nonsense", "127.0.0.1:", ":1"}) {
    config.rendezvous = address;
    EXPECT_EQ(error_of([&] { (void)join_world(config); }).code(), Status::invalid_argument) << address;
  }
}

TEST(RendezvousServer, RefusesOptionsThatMakeNoWorld) {
  const auto code = [](RendezvousServer::Options options) {
    return error_of([&] { const RendezvousServer server(std::move(options)); }).code();
  };
  EXPECT_EQ(code({0, "secret"}), Status::invalid_argument);
  EXPECT_EQ(code({1025, "secret"}), Status::invalid_argument);
  EXPECT_EQ(code({1, ""}), Status::invalid_argument);
  EXPECT_EQ(code({1, "secret", "no such address"}), Status::invalid_argument);
  EXPECT_EQ(code({1, "secret", "192.0.2.1"}), Status::unreachable);  // TEST-NET-1: no machine has it
}

TEST(RendezvousServer, APortInUseIsNamed) {
  const RendezvousServer first({1, "secret"});
  const Error error = error_of([&] { const RendezvousServer second({1, "secret", first.address()}); });
  EXPECT_EQ(error.code(), Status::unreachable);
  EXPECT_TRUE(mentions(error, "cannot listen on " + first.address())) << error.what();
  EXPECT_TRUE(mentions(error, "Address already in use")) << error.what();
}

TEST(RendezvousServer, NothingIsLeftOpen) {
  const auto world = [] {
    run_over_tcp(4, [](Bootstrap& bootstrap) { (void)bootstrap.exchange_descriptors(0, generous_ns); });
  };
  world();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 3; ++i) world();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Token, Is128RandomBits) {
  EXPECT_EQ(make_token().size(), 32u);
  EXPECT_NE(make_token(), make_token());
}

}  // namespace

}  // namespace beeline::tests
