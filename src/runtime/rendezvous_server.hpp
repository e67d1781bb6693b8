// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State of the rendezvous server. Only its thread touches it, except what `mutex_` guards.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/status.hpp"
#include "beeline/runtime/health.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"

namespace beeline {

namespace detail {

/// The collective call that a rank waits in.
struct Contribution {
  bool for_survivors;  ///< it asks who is left; otherwise an allgather
  std::uint64_t sequence;
  Deadline deadline;
  std::vector<std::byte> bytes;
};

struct ServedWorld;

/// One client: a stranger (rank -1, no world) until its hello is accepted.
class Connection {
 public:
  explicit Connection(FileDescriptor descriptor) : socket(std::move(descriptor)) {}
  /// Once the client has closed nothing is sent. What it sent before is still read: a goodbye may be among it.
  void send(EncodedFrame frame);
  void flush();
  [[nodiscard]] bool sending() const { return !queue_.empty(); }

  FileDescriptor socket;
  FrameReader reader{max_hello_bytes};
  int rank = -1;
  ServedWorld* world = nullptr;
  bool refused = false;               ///< the reason is on its way; what arrives is ignored
  bool broken = false;                ///< to be dropped
  Deadline patience{10'000'000'000};  ///< a stranger's time to say hello, or to read why it was refused
  std::optional<Contribution> waiting;

 private:
  std::deque<EncodedFrame> queue_;
  std::size_t sent_ = 0;
  bool listens_ = true;
};

/// One of the worlds that the ranks make.
struct ServedWorld {
  struct Seat {
    Connection* connection = nullptr;
    bool taken = false;  ///< without a connection: the rank has left or died
    RankState state = RankState::healthy;
    bool member = true;  ///< of those that calls are collective over

    [[nodiscard]] bool asks() const {
      return connection != nullptr && connection->waiting && connection->waiting->for_survivors;
    }
    [[nodiscard]] bool contributes() const {
      return connection != nullptr && connection->waiting && !connection->waiting->for_survivors;
    }
  };
  explicit ServedWorld(std::size_t size) : seats(size) {}

  void send_to_all(const EncodedFrame& frame);
  /// Tells the others who have left, of all of them at once: where hundreds leave, each would get as many frames.
  void tell_who_left();
  /// A rank that asks who is left, or -1.
  [[nodiscard]] int first_that_asks() const;

  std::vector<Seat> seats;
  std::vector<EncodedFrame> news;  ///< of all failures so far, for those that join later
  std::vector<int> culprits;       ///< that the ranks have been told of; -1: the launcher, which ends the world
  bool broken = false;             ///< a member has failed since the members were agreed on, or the launcher has
  std::size_t ends_told = 0;       ///< of the ends that concern all worlds
  std::vector<std::byte> left;     ///< frames of those who have left that the others have not been told of
};

}  // namespace detail

class RendezvousServer::Implementation {
 public:
  explicit Implementation(Options options);
  ~Implementation();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int failure_descriptor() const noexcept { return failed_.descriptor(); }
  void close();
  void await_departure(std::int64_t nanoseconds);
  /// A failure in all worlds, those to come included.
  void fail(const WorldFailure& failure);
  [[nodiscard]] std::optional<WorldFailure> failure() const;
  [[nodiscard]] std::vector<WorldFailure> take_failures();
  void expect_no_more(int rank);
  [[nodiscard]] bool is_missed(int rank) const;

 private:
  struct Rank {
    std::uint64_t process = 0;    ///< that joined last
    std::uint64_t worlds = 0;     ///< that it has joined
    std::size_t connections = 0;  ///< that are open
    bool ended = false;           ///< its process joins no world any more
  };

  void serve();
  [[nodiscard]] int poll_milliseconds() const;
  void accept();
  [[nodiscard]] std::size_t strangers() const;
  [[nodiscard]] bool drop_oldest_stranger();
  void pause_accepting(int error);
  void note_ended_ranks();
  void receive(detail::Connection& connection);
  void dispatch(detail::Connection& connection, detail::Frame frame);
  [[nodiscard]] std::string why_refuse(const detail::Frame& hello) const;
  void greet(detail::Connection& connection, const detail::Frame& hello);
  void refuse(detail::Connection& connection, const std::string& why);
  void contribute(detail::Connection& connection, detail::Frame frame);
  void complete_round(detail::ServedWorld& world);
  void fail_waiting(detail::Connection& connection, Status status, const std::string& message);
  void fail_if_impossible(detail::ServedWorld& world);
  void fail_world(detail::ServedWorld& world, const WorldFailure& failure);
  void call_survivors(detail::Connection& connection, const detail::Frame& frame);
  void settle_survivors(detail::ServedWorld& world);
  void vacate(detail::Connection& connection);
  void leave(detail::Connection& connection);
  void end_departures();
  void push_ends();
  void expire();
  void expire_allgather(detail::ServedWorld& world);
  void expire_survivors(detail::ServedWorld& world);
  void drop_broken();

  Options options_;
  FileDescriptor listener_;
  std::string address_;
  detail::Event wake_, failed_;
  std::vector<std::unique_ptr<detail::Connection>> connections_;
  std::vector<Rank> ranks_;
  std::map<std::uint64_t, detail::ServedWorld> worlds_;  ///< by how many the ranks joined before
  std::optional<detail::Deadline> pause_;  ///< no connection is accepted until then: no descriptor is left
  bool has_said_pause_ = false;
  std::atomic<bool> stopping_{false}, closing_{false};
  mutable std::mutex mutex_;  ///< guards the next eight
  std::condition_variable departed_;
  std::vector<WorldFailure> failures_;  ///< of any world
  std::size_t taken_ = 0;               ///< how many of them the launcher has taken
  std::vector<WorldFailure> ends_;      ///< failures in all worlds
  std::size_t members_ = 0;             ///< connections with a rank
  std::vector<int> ended_;              ///< ranks that expect_no_more() has named, and the thread has not seen
  std::vector<int> missed_;             ///< ranks that ended before they joined a world
  bool told_ = false;                   ///< a failure was reported to ranks that have not continued after it
  std::thread thread_;
};

}  // namespace beeline
