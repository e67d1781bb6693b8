// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/log.hpp"
#include "runtime/tls/rendezvous_keys.hpp"

namespace beeline {

using detail::Connection;
using detail::Deadline;
using detail::encode;
using detail::Frame;
using detail::FrameReader;
using detail::FrameType;
using detail::ServedWorld;

namespace {

constexpr std::int64_t refused_linger_ns = 1'000'000'000;
constexpr std::size_t max_strangers = max_ranks + 128;  // connections without a rank; one more drops the oldest
constexpr int accepted_at_once = 64;  // in one round; frames are read between rounds, before strangers are dropped
constexpr std::int64_t pause_ns = 100'000'000;

bool same_token(const std::string& shown, const std::string& expected) {
  // The time of the comparison does not depend on how much of the token is right.
  unsigned char difference = shown.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference |= static_cast<unsigned char>((i < shown.size() ? shown[i] : 0) ^ expected[i]);
  return difference == 0;
}

}  // namespace

RendezvousServer::Implementation::Implementation(Options options)
    : options_(std::move(options)), ranks_(static_cast<std::size_t>(std::max(options_.size, 0))) {
  require(options_.size >= 1 && options_.size <= static_cast<int>(max_ranks), Status::invalid_argument,
          fmt::format("a world has 1 to {} ranks, not {}", max_ranks, options_.size));
  require(!options_.token.empty() && options_.token.size() <= detail::max_hello_bytes, Status::invalid_argument,
          fmt::format("the token has {} characters: expected 1 to {}", options_.token.size(), detail::max_hello_bytes));
  if (options_.secure) require(detail::tls_reason().empty(), Status::unavailable, detail::tls_reason());
  listener_ = detail::listen_tcp(options_.address);
  address_ = detail::local_endpoint(listener_.get());
  thread_ = detail::start_thread(
      "the rendezvous server", [](void* self) { static_cast<Implementation*>(self)->serve(); }, this);
  fork_handler_.emplace([this] { close_in_child(); }, &round_mutex_);
}

RendezvousServer::Implementation::~Implementation() {
  stopping_.store(true);
  wake_.raise();
  thread_.join();
}

void RendezvousServer::Implementation::close() {
  closing_.store(true);  // set before the caller sends anything, since the thread checks it before it reads
  wake_.raise();
}

void RendezvousServer::Implementation::await_departure(std::int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  departed_.wait_until(lock, Deadline(nanoseconds).end(), [this] { return members_ == 0 || reported_; });
}

void RendezvousServer::Implementation::fail(const WorldFailure& failure) {
  const std::scoped_lock lock(mutex_);
  for (const WorldFailure& known : ends_)
    if (known.culprit == failure.culprit) return;
  ends_.push_back(failure);
  failures_.push_back(failure);
  failed_.raise();
  wake_.raise();
}

void RendezvousServer::Implementation::push_ends() {
  std::vector<WorldFailure> ends;
  {
    const std::scoped_lock lock(mutex_);
    ends = ends_;
  }
  for (auto& [number, world] : worlds_)
    while (world.ends_published < ends.size()) fail_world(world, ends[world.ends_published++]);
}

void RendezvousServer::Implementation::fail_world(ServedWorld& world, const WorldFailure& failure) {
  if (std::find(world.culprits.begin(), world.culprits.end(), failure.culprit) != world.culprits.end()) return;
  world.culprits.push_back(failure.culprit);
  world.broken = true;
  if (failure.culprit >= 0) {
    ServedWorld::Seat& seat = world.seats[static_cast<std::size_t>(failure.culprit)];
    if (seat.state == RankState::healthy) seat.state = RankState::failed;
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto same = [&](const WorldFailure& end) { return end.culprit == failure.culprit; };
    if (std::none_of(ends_.begin(), ends_.end(), same)) failures_.push_back(failure);
    reported_ = true;
    failed_.raise();
    departed_.notify_all();
  }
  world.failure_frames.push_back(encode({.type = FrameType::aborted,
                                         .rank = failure.culprit,
                                         .number = static_cast<std::int32_t>(failure.status),
                                         .noticed_by = failure.noticed_by},
                                        failure.reason));
  world.send_to_all(world.failure_frames.back());
  for (const ServedWorld::Seat& seat : world.seats)
    if (seat.connection != nullptr && (failure.culprit < 0 || seat.state != RankState::healthy || seat.contributes()))
      seat.connection->waiting.reset();
  settle_survivors(world);
}

std::optional<WorldFailure> RendezvousServer::Implementation::failure() const {
  const std::scoped_lock lock(mutex_);
  return failures_.empty() ? std::nullopt : std::optional(failures_.front());
}

std::vector<WorldFailure> RendezvousServer::Implementation::take_failures() {
  const std::scoped_lock lock(mutex_);
  failed_.lower();
  const auto first = failures_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, failures_.size()));
  return {first, failures_.end()};
}

void RendezvousServer::Implementation::expect_no_more(int rank) {
  const std::scoped_lock lock(mutex_);
  ended_.push_back(rank);
  wake_.raise();
}

bool RendezvousServer::Implementation::is_missed(int rank) const {
  const std::scoped_lock lock(mutex_);
  return std::find(missed_.begin(), missed_.end(), rank) != missed_.end();
}

/// A forked child that keeps the sockets and outlives this process would hide the process's end from the ranks.
void RendezvousServer::Implementation::close_in_child() const {
  if (listener_) ::close(listener_.get());
  for (const auto& each : connections_) ::close(each->stream.descriptor());
}

void RendezvousServer::Implementation::serve() {
  std::unique_lock round(round_mutex_);
  while (!stopping_.load()) {
    if (pause_ && pause_->passed()) pause_.reset();
    std::vector<pollfd> set = {{wake_.descriptor(), POLLIN, 0}, {pause_ ? -1 : listener_.get(), POLLIN, 0}};
    for (const auto& each : connections_)
      set.push_back({each->stream.descriptor(), static_cast<short>(each->sending() ? POLLIN | POLLOUT : POLLIN), 0});
    const int milliseconds = poll_milliseconds();
    round.unlock();
    const int ready = ::poll(set.data(), set.size(), milliseconds);
    round.lock();
    if (ready < 0) continue;
    if (set[0].revents != 0) wake_.lower();
    if (closing_.load()) listener_.reset();
    for (std::size_t i = 2; i < set.size(); ++i) {
      Connection& connection = *connections_[i - 2];
      if ((set[i].revents & POLLOUT) != 0) connection.flush();
      if ((set[i].revents & ~POLLOUT) != 0) receive(connection);
    }
    note_ended_ranks();
    end_departures();
    if (set[1].revents != 0) accept();
    expire();
    drop_broken();
    push_ends();
  }
}

int RendezvousServer::Implementation::poll_milliseconds() const {
  int least = -1;
  const auto consider = [&](const Deadline& deadline) {
    const int milliseconds = deadline.poll_milliseconds();
    if (least < 0 || milliseconds < least) least = milliseconds;
  };
  if (pause_) consider(*pause_);
  for (const auto& each : connections_) {
    if (each->rank < 0) consider(each->stranger_deadline);
    if (each->waiting) consider(each->waiting->deadline);
  }
  return least;
}

void RendezvousServer::Implementation::accept() {
  for (int count = 0; count < accepted_at_once && listener_; ++count) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int error = errno;
    const bool is_scarce = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    if (!socket && is_scarce && !drop_oldest_stranger()) return pause_accepting(error);
    if (!socket && is_scarce) continue;
    if (!socket) return;
    if (strangers() >= max_strangers) static_cast<void>(drop_oldest_stranger());
    detail::tune_connection(socket.get());
    connections_.push_back(std::make_unique<Connection>(
        detail::TcpStream(std::move(socket), options_.secure ? detail::serve_rendezvous(options_.token) : nullptr)));
  }
}

std::size_t RendezvousServer::Implementation::strangers() const {
  const auto count = std::count_if(connections_.begin(), connections_.end(),
                                   [](const auto& each) { return each->rank < 0 && !each->broken; });
  return static_cast<std::size_t>(count);
}

/// Closes the oldest connection without a rank; false if there is none.
bool RendezvousServer::Implementation::drop_oldest_stranger() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const auto& each) { return each->rank < 0 && !each->broken; });
  if (oldest == connections_.end()) return false;
  (*oldest)->stream.close();
  (*oldest)->broken = true;
  return true;
}

void RendezvousServer::Implementation::pause_accepting(int error) {
  pause_.emplace(pause_ns);
  if (has_said_pause_) return;
  has_said_pause_ = log_at_once(
      LogLevel::warning,
      fmt::format("the rendezvous server can accept no connection beside its {}: {}; it waits until it can (ulimit -n)",
                  connections_.size(), detail::system_message(error)));
}

void RendezvousServer::Implementation::note_ended_ranks() {
  std::vector<int> ended;
  {
    const std::scoped_lock lock(mutex_);
    ended.swap(ended_);
  }
  for (const int rank : ended) ranks_[static_cast<std::size_t>(rank)].ended = true;
  if (ended.empty()) return;
  for (auto& [number, world] : worlds_) fail_if_impossible(world);
}

void RendezvousServer::Implementation::receive(Connection& connection) {
  if (connection.refused) {
    std::array<char, 4096> ignored;
    const ssize_t got = ::recv(connection.stream.descriptor(), ignored.data(), ignored.size(), 0);
    connection.broken = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return;
  }
  while (!connection.broken && !connection.refused) {
    switch (connection.reader.read(connection.stream)) {
      case FrameReader::Result::frame:
        dispatch(connection, connection.reader.take());
        break;
      case FrameReader::Result::would_block:
        return;
      case FrameReader::Result::closed:
        connection.broken = true;
        return;
      case FrameReader::Result::garbage:
        refuse(connection, "not a frame of this protocol");
        return;
    }
  }
}

void RendezvousServer::Implementation::dispatch(Connection& connection, Frame frame) {
  const FrameType type = frame.header.type;
  if (connection.rank < 0) {
    if (type != FrameType::hello) return refuse(connection, "the first frame must be a hello");
    return greet(connection, frame);
  }
  if (type == FrameType::contribute) return contribute(connection, std::move(frame));
  if (type == FrameType::abort)
    return fail_world(*connection.world,
                      {connection.rank, Status::aborted,
                       fmt::format("rank {} aborted: {}", connection.rank, frame.text()), connection.rank});
  if (type == FrameType::survivors) return call_survivors(connection, frame);
  if (type == FrameType::goodbye) return leave(connection);
  refuse(connection, fmt::format("unexpected frame of type {}", static_cast<unsigned>(type)));
}

std::string RendezvousServer::Implementation::why_refuse(const Connection& connection, const Frame& hello) const {
  const int rank = hello.header.rank, size = hello.header.number;
  if (hello.header.version != detail::FrameHeader::protocol_version)
    return fmt::format("protocol version {}, but the server's is {}", hello.header.version,
                       detail::FrameHeader::protocol_version);
  if (!options_.secure && !same_token(hello.text(), options_.token)) return std::string(detail::wrong_token);
  if (const std::string* shown = connection.stream.identity();
      shown != nullptr && *shown != detail::rendezvous_identity(rank, size))
    return fmt::format("it introduces itself as {}, by the key of {}", detail::rendezvous_identity(rank, size), *shown);
  if (size != options_.size) return fmt::format("size {}, but the world has {} ranks", size, options_.size);
  if (rank < 0 || rank >= size) return fmt::format("rank {} is not in a world of {} ranks", rank, size);
  const Rank& known = ranks_[static_cast<std::size_t>(rank)];
  if (known.connections > 0 && known.process != hello.header.sequence)
    return fmt::format("rank {} has already joined, from another process", rank);
  return {};
}

void RendezvousServer::Implementation::greet(Connection& connection, const Frame& hello) {
  if (const std::string why = why_refuse(connection, hello); !why.empty()) return refuse(connection, why);
  const auto index = static_cast<std::size_t>(hello.header.rank);
  Rank& rank = ranks_[index];
  ServedWorld& world = worlds_.try_emplace(rank.worlds++, ranks_.size()).first->second;
  rank.process = hello.header.sequence;
  ++rank.connections;
  world.seats[index].connection = &connection;
  world.seats[index].taken = true;
  connection.rank = hello.header.rank;
  connection.world = &world;
  connection.reader.set_max_bytes(detail::max_contribution_bytes);
  connection.send(encode({.type = FrameType::welcome}));
  for (const detail::EncodedFrame& each : world.failure_frames) connection.send(each);
  const std::scoped_lock lock(mutex_);
  ++members_;
}

void RendezvousServer::Implementation::refuse(Connection& connection, const std::string& why) {
  // A member that sends garbage has failed in its world; a stranger belongs to no world.
  if (connection.rank >= 0) {
    fail({connection.rank, Status::peer_died, fmt::format("rank {}: {}", connection.rank, why)});
    vacate(connection);
  }
  connection.refused = true;
  // Closing at once could discard the reason before it is sent.
  connection.stranger_deadline = Deadline(refused_linger_ns);
  connection.send(encode({.type = FrameType::refuse}, why));
}

void RendezvousServer::Implementation::vacate(Connection& connection) {
  const auto index = static_cast<std::size_t>(connection.rank);
  ServedWorld& world = *connection.world;
  world.seats[index].connection = nullptr;
  --ranks_[index].connections;
  connection.waiting.reset();
  connection.rank = -1;
  connection.world = nullptr;
  std::erase_if(worlds_, [](const auto& entry) {
    const auto& seats = entry.second.seats;
    return std::all_of(seats.begin(), seats.end(),
                       [](const ServedWorld::Seat& seat) { return seat.taken && seat.connection == nullptr; });
  });
  const std::scoped_lock lock(mutex_);
  --members_;
  departed_.notify_all();
}

void RendezvousServer::Implementation::leave(Connection& connection) {
  const int rank = connection.rank;
  ServedWorld& left = *connection.world;
  ServedWorld::Seat& seat = left.seats[static_cast<std::size_t>(rank)];
  if (seat.state == RankState::healthy) seat.state = RankState::left;
  seat.connection = nullptr;
  const detail::EncodedFrame frame = encode({.type = FrameType::left, .rank = rank});
  left.left.insert(left.left.end(), frame->begin(), frame->end());
  vacate(connection);  // after the last rank the world is removed, too
  connection.broken = true;
}

void RendezvousServer::Implementation::end_departures() {
  for (auto& [number, world] : worlds_) {
    if (world.left.empty()) continue;
    world.publish_left();
    fail_if_impossible(world);
    settle_survivors(world);
  }
}

void RendezvousServer::Implementation::expire() {
  for (auto& [number, world] : worlds_) {
    expire_allgather(world);
    expire_survivors(world);
  }
  for (const auto& each : connections_)
    if (each->rank < 0 && each->stranger_deadline.passed()) each->broken = true;
}

void RendezvousServer::Implementation::drop_broken() {
  for (const auto& each : connections_) {
    if (!each->broken || each->rank < 0) continue;
    fail({each->rank, Status::peer_died, fmt::format("rank {} ended without leaving the world", each->rank)});
    vacate(*each);
  }
  std::erase_if(connections_, [](const auto& each) { return each->broken; });
}

RendezvousServer::RendezvousServer(Options options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
RendezvousServer::~RendezvousServer() = default;

const std::string& RendezvousServer::address() const noexcept { return implementation_->address(); }
void RendezvousServer::abort(int culprit, const std::string& reason) {
  implementation_->fail({culprit, culprit < 0 ? Status::aborted : Status::peer_died, reason});
}
void RendezvousServer::close() { implementation_->close(); }
void RendezvousServer::await_departure(std::int64_t nanoseconds) { implementation_->await_departure(nanoseconds); }
std::optional<WorldFailure> RendezvousServer::failure() const { return implementation_->failure(); }
std::vector<WorldFailure> RendezvousServer::take_failures() { return implementation_->take_failures(); }
void RendezvousServer::expect_no_more(int rank) { implementation_->expect_no_more(rank); }
bool RendezvousServer::is_missed(int rank) const { return implementation_->is_missed(rank); }
int RendezvousServer::failure_descriptor() const noexcept { return implementation_->failure_descriptor(); }

std::string make_token() {
  std::array<unsigned char, 16> random{};
  require(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()), Status::internal,
          "the system gives no random numbers");
  std::string token;
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace beeline
