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

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "runtime/rank_list.hpp"

namespace beeline {

using detail::Connection;
using detail::Deadline;
using detail::encode;
using detail::Frame;
using detail::FrameReader;
using detail::FrameType;

namespace {

constexpr std::int64_t refused_linger_ns = 1'000'000'000;
constexpr std::size_t max_strangers = 128;  // connections without a rank; more are closed at once

bool same_token(const std::string& shown, const std::string& expected) {
  // The time taken tells nothing about how much of the token was right.
  unsigned char difference = shown.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference |= static_cast<unsigned char>((i < shown.size() ? shown[i] : 0) ^ expected[i]);
  return difference == 0;
}

}  // namespace

namespace detail {

void Connection::send(EncodedFrame frame) {
  queue_.push_back(std::move(frame));
  flush();
}

void Connection::flush() {
  while (!broken && !queue_.empty()) {
    broken = !write_some(socket.get(), *queue_.front(), sent_);
    if (sent_ < queue_.front()->size()) return;
    queue_.pop_front();
    sent_ = 0;
  }
  if (!broken && refused) ::shutdown(socket.get(), SHUT_WR);
}

}  // namespace detail

RendezvousServer::Implementation::Implementation(Options options)
    : options_(std::move(options)), seats_(static_cast<std::size_t>(std::max(options_.size, 0))) {
  require(options_.size >= 1 && options_.size <= static_cast<int>(max_ranks), Status::invalid_argument,
          fmt::format("a world has 1 to {} ranks, not {}", max_ranks, options_.size));
  require(!options_.token.empty() && options_.token.size() <= detail::max_hello_bytes, Status::invalid_argument,
          fmt::format("the token has {} characters: expected 1 to {}", options_.token.size(), detail::max_hello_bytes));
  listener_ = detail::listen_tcp(options_.address);
  address_ = detail::local_endpoint(listener_.get());
  thread_ = detail::start_thread([](void* self) { static_cast<Implementation*>(self)->serve(); }, this);
}

RendezvousServer::Implementation::~Implementation() {
  stopping_.store(true);
  wake_.raise();
  thread_.join();
}

void RendezvousServer::Implementation::fail(WorldFailure failure) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
  }
  failed_.raise();
  wake_.raise();
}

std::optional<WorldFailure> RendezvousServer::Implementation::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void RendezvousServer::Implementation::serve() {
  while (!stopping_.load()) {
    std::vector<pollfd> set = {{wake_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& each : connections_)
      set.push_back({each->socket.get(), static_cast<short>(each->sending() ? POLLIN | POLLOUT : POLLIN), 0});
    if (::poll(set.data(), set.size(), poll_milliseconds()) < 0) continue;
    if (set[0].revents != 0) wake_.lower();
    for (std::size_t i = 2; i < set.size(); ++i) {
      Connection& connection = *connections_[i - 2];
      if ((set[i].revents & POLLOUT) != 0) connection.flush();
      if ((set[i].revents & ~POLLOUT) != 0) receive(connection);
    }
    if (set[1].revents != 0) accept();
    expire();
    drop_broken();
    push_failure();
  }
}

int RendezvousServer::Implementation::poll_milliseconds() const {
  int least = -1;
  const auto consider = [&](const Deadline& deadline) {
    const int milliseconds = deadline.poll_milliseconds();
    if (least < 0 || milliseconds < least) least = milliseconds;
  };
  for (const auto& each : connections_) {
    if (each->rank < 0) consider(each->patience);
    if (each->waiting) consider(each->waiting->deadline);
  }
  return least;
}

void RendezvousServer::Implementation::accept() {
  while (true) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto strangers =
        std::count_if(connections_.begin(), connections_.end(), [](const auto& each) { return each->rank < 0; });
    if (static_cast<std::size_t>(strangers) >= max_strangers) continue;
    detail::disable_nagle(socket.get());
    connections_.push_back(std::make_unique<Connection>(std::move(socket)));
  }
}

void RendezvousServer::Implementation::receive(Connection& connection) {
  if (connection.refused) {
    std::array<char, 4096> ignored;
    const ssize_t got = ::recv(connection.socket.get(), ignored.data(), ignored.size(), 0);
    connection.broken = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return;
  }
  while (!connection.broken && !connection.refused) {
    switch (connection.reader.read(connection.socket.get())) {
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
    return fail({connection.rank, Status::aborted, fmt::format("rank {} aborted: {}", connection.rank, frame.text())});
  if (type == FrameType::goodbye) return leave(connection);
  refuse(connection, fmt::format("unexpected frame of type {}", static_cast<unsigned>(type)));
}

std::string RendezvousServer::Implementation::why_refuse(const Frame& hello) const {
  const int rank = hello.header.rank, size = hello.header.number;
  if (hello.header.version != detail::FrameHeader::protocol_version)
    return fmt::format("protocol version {}, but the server's is {}", hello.header.version,
                       detail::FrameHeader::protocol_version);
  if (!same_token(hello.text(), options_.token)) return "wrong token";
  if (size != options_.size) return fmt::format("size {}, but the world has {} ranks", size, options_.size);
  if (rank < 0 || rank >= size) return fmt::format("rank {} is not in a world of {} ranks", rank, size);
  if (seats_[static_cast<std::size_t>(rank)].connection != nullptr)
    return fmt::format("rank {} has already joined", rank);
  return {};
}

void RendezvousServer::Implementation::greet(Connection& connection, const Frame& hello) {
  if (const std::string why = why_refuse(hello); !why.empty()) return refuse(connection, why);
  Seat& seat = seats_[static_cast<std::size_t>(hello.header.rank)];
  seat.connection = &connection;
  ++seat.joined;
  connection.rank = hello.header.rank;
  connection.reader.set_max_bytes(detail::max_contribution_bytes);
  connection.send(encode({.type = FrameType::welcome}));
  if (failure_frame_) connection.send(failure_frame_);
}

void RendezvousServer::Implementation::refuse(Connection& connection, const std::string& why) {
  // A member that sends garbage is lost to its world; a stranger never was in it.
  if (connection.rank >= 0) {
    fail({connection.rank, Status::peer_died, fmt::format("rank {}: {}", connection.rank, why)});
    vacate(connection);
  }
  connection.refused = true;
  connection.patience = Deadline(refused_linger_ns);  // closing at once could destroy the reason on its way
  connection.send(encode({.type = FrameType::refuse}, why));
}

void RendezvousServer::Implementation::contribute(Connection& connection, Frame frame) {
  if (failure_frame_) return;  // the rank will read why
  connection.waiting.emplace(
      detail::Contribution{frame.header.sequence, Deadline(frame.header.deadline_ns), std::move(frame.payload)});
  fail_if_impossible();
  if (failure()) return;
  const bool complete = std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return seat.connection != nullptr && seat.connection->waiting;
  });
  if (complete) complete_round();
}

void RendezvousServer::Implementation::complete_round() {
  std::vector<std::uint64_t> lengths;
  std::size_t total = seats_.size() * sizeof(std::uint64_t);
  for (const Seat& seat : seats_) {
    lengths.push_back(seat.connection->waiting->bytes.size());
    total += lengths.back();
  }
  std::vector<std::byte> all(total);
  std::memcpy(all.data(), lengths.data(), lengths.size() * sizeof(std::uint64_t));
  std::byte* end = all.data() + lengths.size() * sizeof(std::uint64_t);
  for (const Seat& seat : seats_) {
    const auto& bytes = seat.connection->waiting->bytes;
    end = std::copy(bytes.begin(), bytes.end(), end);
  }
  const auto payload = std::make_shared<const std::vector<std::byte>>(std::move(all));
  for (const Seat& seat : seats_) {
    Connection& connection = *seat.connection;
    detail::FrameHeader header{.type = FrameType::gathered, .sequence = connection.waiting->sequence};
    header.bytes = payload->size();
    connection.waiting.reset();
    connection.send(std::make_shared<const std::vector<std::byte>>(reinterpret_cast<const std::byte*>(&header),
                                                                   reinterpret_cast<const std::byte*>(&header + 1)));
    connection.send(payload);
  }
}

void RendezvousServer::Implementation::fail_waiting(Connection& connection, Status status, const std::string& message) {
  const detail::FrameHeader header{
      .type = FrameType::failed, .number = static_cast<std::int32_t>(status), .sequence = connection.waiting->sequence};
  connection.waiting.reset();
  connection.send(encode(header, message));
}

void RendezvousServer::Implementation::fail_if_impossible() {
  for (const auto& each : connections_) {
    if (!each->waiting) continue;
    const std::uint64_t joined = seats_[static_cast<std::size_t>(each->rank)].joined;
    std::vector<int> left;
    for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
      const Seat& seat = seats_[rank];
      if (seat.joined > joined || (seat.joined == joined && seat.connection == nullptr))
        left.push_back(static_cast<int>(rank));
    }
    if (!left.empty()) return fail({left.front(), Status::peer_died, detail::left_message(left)});
  }
}

void RendezvousServer::Implementation::vacate(Connection& connection) {
  seats_[static_cast<std::size_t>(connection.rank)].connection = nullptr;
  connection.waiting.reset();
  connection.rank = -1;
}

void RendezvousServer::Implementation::leave(Connection& connection) {
  vacate(connection);
  connection.broken = true;
  fail_if_impossible();
}

void RendezvousServer::Implementation::push_failure() {
  const auto first = failure();
  if (!first || failure_frame_) return;
  failure_frame_ =
      encode({.type = FrameType::aborted, .rank = first->culprit, .number = static_cast<std::int32_t>(first->status)},
             first->reason);
  for (const Seat& seat : seats_) {
    if (seat.connection == nullptr) continue;
    seat.connection->waiting.reset();
    seat.connection->send(failure_frame_);
  }
}

void RendezvousServer::Implementation::expire() {
  const auto late = std::find_if(connections_.begin(), connections_.end(),
                                 [](const auto& each) { return each->waiting && each->waiting->deadline.passed(); });
  if (late != connections_.end()) {
    std::vector<int> not_called, not_joined;
    const std::uint64_t joined = seats_[static_cast<std::size_t>((*late)->rank)].joined;
    for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
      if (seats_[rank].joined < joined)
        not_joined.push_back(static_cast<int>(rank));
      else if (!seats_[rank].connection->waiting)
        not_called.push_back(static_cast<int>(rank));
    }
    const std::string message =
        detail::missing_message((*late)->waiting->deadline.total_seconds(), not_called, not_joined);
    for (const auto& each : connections_)
      if (each->waiting) fail_waiting(*each, Status::deadline, message);
  }
  for (const auto& each : connections_)
    if (each->rank < 0 && each->patience.passed()) each->broken = true;
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
std::optional<WorldFailure> RendezvousServer::failure() const { return implementation_->failure(); }
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
