// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_bootstrap.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"
#include "runtime/descriptor_exchange.hpp"
#include "runtime/process_id.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"
#include "runtime/tcp_stream.hpp"
#include "runtime/tls/rendezvous_keys.hpp"

namespace beeline {

namespace {

using detail::Deadline;
using detail::encode;
using detail::Frame;
using detail::FrameReader;
using detail::FrameType;

constexpr std::int64_t farewell_ns = 1'000'000'000;
constexpr std::int64_t longest_retry_ns = 5'000'000'000;  // limit of retries with a server that closes connections
constexpr std::chrono::milliseconds longest_pause{100};
constexpr auto report_time = std::chrono::seconds(1);  // for the server to report which rank ended first

/// Extends a call's deadline, so that the server, which knows the missing ranks, reports them first. Its cores may be
/// busy, and without its answer no rank goes on.
std::int64_t with_margin(std::int64_t deadline_ns) {
  return deadline_ns + std::max<std::int64_t>(deadline_ns / 20, 1'000'000'000);
}

class TcpBootstrap final : public Bootstrap {
 public:
  TcpBootstrap(const Config& config, const Deadline& deadline, detail::ServerHost host);
  ~TcpBootstrap() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) override;
  [[nodiscard]] std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) override;
  void set_neighbors(std::vector<int> ranks) override { neighbors_ = std::move(ranks); }
  void on_abort(AbortHandler handler) override;
  void abort(const std::string& reason) override;
  [[nodiscard]] std::vector<RankHealth> health() const override;
  [[nodiscard]] std::vector<int> agree_on_survivors(std::int64_t deadline_ns) override;
  void leave() override;

 private:
  /// Connects to the server. Connects again if the server drops the connection before the hello, in favour of others.
  void join(const Config& config, const Deadline& deadline);
  /// Agrees on the keys of TLS. Returns false if the server has closed the connection.
  [[nodiscard]] bool shake_hands(const Deadline& deadline);
  /// Sends the hello. Returns false if the server has closed the connection without an answer.
  [[nodiscard]] bool greet(const std::string& token, const Deadline& deadline);
  [[nodiscard]] FrameReader::Result read_frame();
  /// Writes a frame from `offset` on. Returns whether it is sent, or why it is not: `closed` or `would_block`.
  [[nodiscard]] FrameReader::Result write_some(const detail::EncodedFrame& frame, std::size_t& offset);
  void send(const detail::EncodedFrame& frame, const Deadline& deadline);
  void read_frames();
  void take(Frame frame);
  void take_agreement(const Frame& frame);
  void fail(WorldFailure failure);
  void lose(WorldFailure failure);
  void report();
  [[nodiscard]] bool is_excluded() const;  ///< called with mutex_ held
  [[nodiscard]] std::vector<std::vector<std::byte>> split(const Frame& gathered) const;
  [[noreturn]] void throw_failure() const;
  [[nodiscard]] WorldFailure end_of_server(const std::string& how) const;
  [[nodiscard]] const char* server_name() const { return host_.rank < 0 ? "the launcher" : "rank 0's server"; }

  int rank_, size_;
  std::int64_t deadline_ns_;
  detail::ServerHost host_;
  std::mutex stream_mutex_;  ///< of stream_, between the thread that reads and those that send
  detail::TcpStream stream_;
  const std::uint64_t most_answer_bytes_;
  FrameReader reader_;
  bool left_ = false;
  detail::Event stop_;
  detail::Event failed_;      ///< raised with failure_, for waits in poll()
  std::mutex send_mutex_;     ///< held while one frame is sent
  mutable std::mutex mutex_;  ///< guards the members up to handler_mutex_
  std::condition_variable changed_;
  std::uint64_t sequence_ = 0;
  std::optional<Frame> reply_;           ///< answers the call `sequence_`
  std::optional<WorldFailure> failure_;  ///< the first since the ranks last agreed on survivors
  bool lost_ = false;                    ///< the launcher has ended, or cannot be reached: failure_ is permanent
  bool closed_ = false;                  ///< the server sends nothing more
  std::vector<WorldFailure> failures_;   ///< all failures to report to the handler
  std::vector<RankHealth> health_;       ///< [size]
  std::vector<int> members_;             ///< ranks over which calls are collective
  std::mutex handler_mutex_;  ///< held while the handler runs, so that replacing it waits for the handler's end
  AbortHandler handler_;
  std::size_t reported_ = 0;    ///< number of failures in failures_ that were reported to a handler
  std::vector<int> neighbors_;  ///< ranks that descriptors are exchanged with; empty: all
  std::unique_ptr<detail::DescriptorExchange> exchange_;
  std::thread thread_;
  std::optional<detail::ForkHandler> fork_handler_;
};

TcpBootstrap::TcpBootstrap(const Config& config, const Deadline& deadline, detail::ServerHost host)
    : rank_(config.rank), size_(config.size), deadline_ns_(config.deadline_ns), host_(std::move(host)),
      most_answer_bytes_(detail::max_contribution_bytes * static_cast<std::uint64_t>(std::max(config.size, 1)) + 4096),
      reader_(most_answer_bytes_) {
  health_.resize(static_cast<std::size_t>(std::max(size_, 0)));
  for (int rank = 0; rank < size_; ++rank) members_.push_back(rank);
  join(config, deadline);
  thread_ = detail::start_thread(
      "messages of the rendezvous server", [](void* self) { static_cast<TcpBootstrap*>(self)->read_frames(); }, this);
  // A forked child that keeps the socket and outlives this process would hide the process's end from the server.
  fork_handler_.emplace([socket = stream_.descriptor()] { ::close(socket); });
}

void TcpBootstrap::leave() {
  if (std::exchange(left_, true)) return;
  try {
    on_abort(nullptr);
    send(encode({.type = FrameType::goodbye}), Deadline(farewell_ns));
    // The server closes first: closing with unread frames would break the connection before the server reads the
    // goodbye.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(farewell_ns), [this] { return closed_; });
  } catch (const std::exception&) {
    // The server has ended, or has ended the world: no rank waits for a goodbye.
  }
}

TcpBootstrap::~TcpBootstrap() {
  leave();
  stop_.raise();
  thread_.join();
  // Without an error, the others have completed the last barrier and are about to leave, too.
  if (host_.server) host_.server->await_departure(std::uncaught_exceptions() > 0 ? farewell_ns : deadline_ns_);
}

void TcpBootstrap::join(const Config& config, const Deadline& deadline) {
  require(!config.secure || !config.token.empty(), Status::invalid_argument,
          "BEELINE_SECURE=1 derives keys from BEELINE_TOKEN, which is not set");
  // The limit covers a crowd of strangers at a real server; another program at this address closes connections forever.
  const Deadline retries(std::min<std::int64_t>(deadline.remaining_ns() / 2, longest_retry_ns));
  for (std::chrono::milliseconds pause{1};; pause = std::min(pause * 2, longest_pause)) {
    stream_ = detail::TcpStream(detail::connect_tcp(config.rendezvous, deadline),
                                config.secure ? detail::greet_rendezvous(config.token, rank_, size_) : nullptr);
    reader_ = FrameReader(most_answer_bytes_);
    if (shake_hands(deadline) && greet(config.secure ? "" : config.token, deadline)) return;
    if (retries.passed())
      throw Error(
          Status::unreachable,
          fmt::format("the program that listens at the rendezvous has closed every connection for {} s: it is no "
                      "Beeline server, or has too many connections of others{}",
                      retries.total_seconds(),
                      config.secure ? ", or another BEELINE_TOKEN" : ", or expects BEELINE_SECURE=1"),
          rank_);
    detail::throw_if_interrupted(rank_);
    std::this_thread::sleep_for(pause);
  }
}

bool TcpBootstrap::shake_hands(const Deadline& deadline) {
  while (!stream_.is_ready()) {
    const ssize_t got = stream_.read({});  // goes on with the handshake
    const int error = errno;
    if (stream_.is_ready()) break;
    if (got == 0 || error == ECONNRESET || error == EPIPE) return false;
    require(error == EAGAIN || error == EWOULDBLOCK, Status::unreachable,
            fmt::format("the program that listens at the rendezvous does not agree on keys: {}; is BEELINE_SECURE set "
                        "for it, too?",
                        stream_.failure(error)));
    const short events = stream_.is_blocked() ? POLLIN | POLLOUT : POLLIN;
    if (detail::wait_ready(stream_.descriptor(), events, -1, deadline) == detail::Ready::deadline)
      throw Error(Status::deadline,
                  fmt::format("the rendezvous server agreed on no keys within {} s", deadline.total_seconds()), rank_);
  }
  return true;
}

FrameReader::Result TcpBootstrap::read_frame() {
  const std::scoped_lock lock(stream_mutex_);
  return reader_.read(stream_);
}

FrameReader::Result TcpBootstrap::write_some(const detail::EncodedFrame& frame, std::size_t& offset) {
  const std::scoped_lock lock(stream_mutex_);
  if (!detail::write_some(stream_, *frame, offset)) return FrameReader::Result::closed;
  return offset < frame->size() || stream_.is_blocked() ? FrameReader::Result::would_block : FrameReader::Result::frame;
}

bool TcpBootstrap::greet(const std::string& token, const Deadline& deadline) {
  const detail::EncodedFrame hello =
      encode({.type = FrameType::hello, .rank = rank_, .number = size_, .sequence = detail::process_id()}, token);
  std::size_t offset = 0;
  FrameReader::Result result;
  while ((result = write_some(hello, offset)) == FrameReader::Result::would_block)
    if (detail::wait_ready(stream_.descriptor(), POLLOUT, -1, deadline) == detail::Ready::deadline)
      throw Error(Status::deadline,
                  fmt::format("the rendezvous server took no data within {} s", deadline.total_seconds()), rank_);
  if (result == FrameReader::Result::closed) return false;
  while ((result = read_frame()) == FrameReader::Result::would_block)
    if (detail::wait_ready(stream_.descriptor(), POLLIN, -1, deadline) == detail::Ready::deadline)
      throw Error(Status::deadline,
                  fmt::format("the rendezvous server did not answer within {} s", deadline.total_seconds()), rank_);
  if (result == FrameReader::Result::closed) return false;
  if (result != FrameReader::Result::frame)
    throw Error(Status::unreachable, "the program that listens at the rendezvous is not a Beeline server", rank_);
  const Frame answer = reader_.take();
  if (answer.header.type == FrameType::welcome) return true;
  const std::string refusal = fmt::format("refused by the rendezvous server: {}", answer.text());
  if (answer.text() == detail::wrong_token) throw detail::WrongToken(Status::invalid_argument, refusal, rank_);
  throw Error(Status::invalid_argument, refusal, rank_);
}

void TcpBootstrap::send(const detail::EncodedFrame& frame, const Deadline& deadline) {
  const std::scoped_lock lock(send_mutex_);
  std::size_t offset = 0;
  while (true) {
    const FrameReader::Result result = write_some(frame, offset);
    if (result == FrameReader::Result::closed) {
      lose(end_of_server("the connection to the launcher is lost"));
      throw_failure();
    }
    if (result == FrameReader::Result::frame) return;
    // Not even a failure ends this wait: after a frame that is sent in part, no other frame could follow.
    if (detail::wait_ready(stream_.descriptor(), POLLOUT, -1, deadline) == detail::Ready::yes) continue;
    lose({-1, Status::deadline, fmt::format("{} took no data within {} s", server_name(), deadline.total_seconds())});
    throw_failure();
  }
}

void TcpBootstrap::read_frames() {
  const Deadline never(INT64_MAX);
  while (true) {
    switch (read_frame()) {
      case FrameReader::Result::frame:
        take(reader_.take());
        break;
      case FrameReader::Result::would_block:
        if (detail::wait_ready(stream_.descriptor(), POLLIN, stop_.descriptor(), never) == detail::Ready::cancelled)
          return;
        break;
      default:
        lose(end_of_server("the launcher has ended, or closed the connection"));
        {
          const std::scoped_lock lock(mutex_);
          closed_ = true;
          changed_.notify_all();
        }
        return report();
    }
  }
}

void TcpBootstrap::take(Frame frame) {
  const int culprit = frame.header.rank;
  if (frame.header.type == FrameType::aborted) {
    if (culprit < size_)
      fail({culprit, static_cast<Status>(frame.header.number), frame.text(), frame.header.noticed_by});
    return report();
  }
  const std::scoped_lock lock(mutex_);
  if (frame.header.type == FrameType::left) {
    if (culprit < 0 || culprit >= size_) return;
    RankHealth& health = health_[static_cast<std::size_t>(culprit)];
    if (health.state == RankState::healthy) health.state = RankState::left;
    return;
  }
  if (frame.header.sequence != sequence_) return;  // it answers a call that has given up
  if (frame.header.type == FrameType::agreed) take_agreement(frame);
  reply_ = std::move(frame);
  changed_.notify_all();
}

/// Runs in the thread that reads frames, in their order: a failure before this frame is settled by the agreement, a
/// failure after the frame is new.
void TcpBootstrap::take_agreement(const Frame& frame) {
  if (lost_ || is_excluded()) return;
  std::vector<std::int32_t> ranks(frame.payload.size() / sizeof(std::int32_t));
  std::memcpy(ranks.data(), frame.payload.data(), ranks.size() * sizeof(std::int32_t));
  members_.assign(ranks.begin(), ranks.end());
  failure_.reset();
  failed_.lower();
}

/// Records a failure after which ranks cannot agree on anything: the server is unreachable.
void TcpBootstrap::lose(WorldFailure failure) {
  fail(std::move(failure));
  const std::scoped_lock lock(mutex_);
  lost_ = true;
  changed_.notify_all();
}

void TcpBootstrap::fail(WorldFailure failure) {
  const std::scoped_lock lock(mutex_);
  if (lost_) return;
  lost_ = failure.culprit < 0;
  if (failure.culprit >= 0) {
    RankHealth& health = health_[static_cast<std::size_t>(failure.culprit)];
    if (health.state == RankState::failed) return;
    if (health.state == RankState::healthy) health = {RankState::failed, failure.noticed_by, failure.reason};
  }
  // A rank that aborts needs no report of its own abort.
  if (failure.culprit != rank_ || failure.noticed_by != rank_) failures_.push_back(failure);
  if (!failure_) failure_ = std::move(failure);
  failed_.raise();
  changed_.notify_all();
}

void TcpBootstrap::report() {
  const std::scoped_lock lock(handler_mutex_);
  if (!handler_) return;
  std::vector<WorldFailure> unreported;
  {
    const std::scoped_lock state(mutex_);
    unreported.assign(failures_.begin() + static_cast<std::ptrdiff_t>(reported_), failures_.end());
    reported_ = failures_.size();
  }
  for (const WorldFailure& each : unreported) handler_(each.culprit, each.reason);
}

bool TcpBootstrap::is_excluded() const { return health_[static_cast<std::size_t>(rank_)].state == RankState::failed; }

std::vector<RankHealth> TcpBootstrap::health() const {
  const std::scoped_lock lock(mutex_);
  return health_;
}

WorldFailure TcpBootstrap::end_of_server(const std::string& how) const {
  if (host_.rank < 0) return {-1, Status::peer_died, how};
  return {host_.rank, Status::peer_died, fmt::format("rank {} ended without leaving the world", host_.rank)};
}

void TcpBootstrap::throw_failure() const {
  const std::scoped_lock lock(mutex_);
  throw Error(failure_->status, failure_->reason, rank_);
}

std::vector<std::vector<std::byte>> TcpBootstrap::allgather(std::span<const std::byte> mine, std::int64_t deadline_ns) {
  if (mine.size() > detail::max_contribution_bytes)
    throw Error(Status::invalid_argument,
                fmt::format("{} bytes in an allgather: at most {}", mine.size(), detail::max_contribution_bytes),
                rank_);
  const Deadline deadline(with_margin(std::clamp<std::int64_t>(deadline_ns, 0, INT64_MAX / 2)));
  detail::FrameHeader header{.type = FrameType::contribute, .deadline_ns = deadline_ns};
  {
    const std::scoped_lock lock(mutex_);
    reply_.reset();
    header.sequence = ++sequence_;
    if (failure_) throw Error(failure_->status, failure_->reason, rank_);
  }
  send(encode(header, mine.data(), mine.size()), deadline);
  std::unique_lock lock(mutex_);
  detail::wait_until(changed_, lock, deadline, rank_, [&] { return reply_ || failure_; });
  if (!reply_ && failure_) throw Error(failure_->status, failure_->reason, rank_);
  if (!reply_) {
    ++sequence_;
    throw Error(Status::deadline,
                fmt::format("allgather: no answer from {} within {} s", server_name(), deadline.total_seconds()),
                rank_);
  }
  const Frame reply = std::move(*reply_);
  lock.unlock();
  if (reply.header.type == FrameType::failed)
    throw Error(static_cast<Status>(reply.header.number), reply.text(), rank_);
  return split(reply);
}

std::vector<int> TcpBootstrap::agree_on_survivors(std::int64_t deadline_ns) {
  const Deadline deadline(with_margin(std::clamp<std::int64_t>(deadline_ns, 0, INT64_MAX / 2)));
  const auto refuse = [&] {
    if (is_excluded())
      throw Error(Status::aborted,
                  fmt::format("rank {} is not among those that are left: {}", rank_,
                              health_[static_cast<std::size_t>(rank_)].reason),
                  rank_);
    if (lost_) throw Error(failure_->status, failure_->reason, rank_);
  };
  detail::FrameHeader header{.type = FrameType::survivors, .deadline_ns = deadline_ns};
  {
    const std::scoped_lock lock(mutex_);
    refuse();
    reply_.reset();
    header.sequence = ++sequence_;
  }
  send(encode(header), deadline);
  std::unique_lock lock(mutex_);
  detail::wait_until(changed_, lock, deadline, rank_, [&] { return reply_ || lost_ || is_excluded(); });
  refuse();
  if (!reply_) {  // the other ranks may have agreed on survivors without this rank
    lock.unlock();
    lose({-1, Status::deadline, fmt::format("no answer from {} within {} s", server_name(), deadline.total_seconds())});
    throw_failure();
  }
  reply_.reset();
  exchange_.reset();  // its sockets may lead to ranks that have ended
  return members_;
}

std::vector<std::vector<std::byte>> TcpBootstrap::split(const Frame& gathered) const {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
  const std::size_t table = lengths.size() * sizeof(std::uint64_t);
  std::uint64_t total = table;
  if (gathered.payload.size() >= table) {
    std::memcpy(lengths.data(), gathered.payload.data(), table);
    for (const std::uint64_t length : lengths) total += length;
  }
  if (gathered.header.type != FrameType::gathered || gathered.payload.size() != total)
    throw Error(Status::internal, "malformed answer from the rendezvous server", rank_);
  std::vector<std::vector<std::byte>> all;
  const std::byte* next = gathered.payload.data() + table;
  for (const std::uint64_t length : lengths) {
    all.emplace_back(next, next + length);
    next += length;
  }
  return all;
}

std::vector<FileDescriptor> TcpBootstrap::exchange_descriptors(int mine, std::int64_t deadline_ns) {
  const Deadline deadline(deadline_ns);
  std::vector<int> members;
  {
    const std::scoped_lock lock(mutex_);
    members = members_;
  }
  if (!neighbors_.empty())
    std::erase_if(members,
                  [this](int each) { return !std::binary_search(neighbors_.begin(), neighbors_.end(), each); });
  auto fresh = std::make_unique<detail::DescriptorExchange>(rank_, members, failed_.descriptor());
  const bool connected = exchange_ != nullptr;
  const auto root = static_cast<std::size_t>(members.front());
  const std::string name = rank_ == members.front() && !connected ? fresh->open() : std::string();
  // Also when already connected: missing ranks are then reported by rank, before any rank waits on a socket.
  const auto names = allgather(std::as_bytes(std::span(name)), deadline.remaining_ns());
  try {
    if (!connected) {
      fresh->connect({reinterpret_cast<const char*>(names[root].data()), names[root].size()}, deadline);
      exchange_ = std::move(fresh);
    }
    std::vector<FileDescriptor> all(static_cast<std::size_t>(size_));
    auto given = exchange_->exchange(mine, deadline);
    for (std::size_t i = 0; i < members.size(); ++i) all[static_cast<std::size_t>(members[i])] = std::move(given[i]);
    return all;
  } catch (const Error& error) {
    std::unique_lock lock(mutex_);
    // If the sockets of several ranks close one after the other, the server knows which rank ended first.
    if (error.code() == Status::peer_died || error.code() == Status::unreachable)
      changed_.wait_for(lock, report_time, [&] { return failure_.has_value(); });
    if (failure_) throw Error(failure_->status, failure_->reason, rank_);  // more precise than the socket's error
    throw;
  }
}

void TcpBootstrap::on_abort(AbortHandler handler) {
  {
    const std::scoped_lock lock(handler_mutex_);
    handler_ = std::move(handler);
  }
  report();
}

void TcpBootstrap::abort(const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    if (lost_ || is_excluded()) return;
  }
  const std::string text = fmt::format("rank {} aborted: {}", rank_, reason);
  fail({rank_, Status::aborted, text, rank_});
  try {
    send(encode({.type = FrameType::abort}, reason), Deadline(farewell_ns));
  } catch (const Error&) {
    // The launcher has ended, which ends the other ranks, too.
  }
}

}  // namespace

std::unique_ptr<Bootstrap> detail::connect_bootstrap(const Config& config, const Deadline& deadline, ServerHost host) {
  return std::make_unique<TcpBootstrap>(config, deadline, std::move(host));
}

}  // namespace beeline
