// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the rendezvous server knows of its clients, and of a world that they make. Used by the server's thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "beeline/runtime/health.hpp"
#include "runtime/deadline.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/tcp_stream.hpp"

namespace beeline {

namespace detail {

/// The collective call in which a rank waits.
struct Contribution {
  bool for_survivors;  ///< the call is agree_on_survivors; otherwise an allgather
  std::uint64_t sequence;
  Deadline deadline;
  std::vector<std::byte> bytes;
};

struct ServedWorld;

/// One client: a stranger (rank -1, no world) until its hello is accepted.
class Connection {
 public:
  explicit Connection(TcpStream connected) : stream(std::move(connected)) {}
  /// Sends nothing after the client has closed its end. Frames that it sent before are still read, possibly a goodbye.
  void send(EncodedFrame frame);
  void flush();
  [[nodiscard]] bool sending() const { return !queue_.empty() || stream.is_blocked(); }

  TcpStream stream;
  FrameReader reader{max_hello_bytes};
  int rank = -1;
  ServedWorld* world = nullptr;
  bool refused = false;                        ///< the reason is being sent; arriving bytes are ignored
  bool broken = false;                         ///< the connection is to be dropped
  Deadline stranger_deadline{10'000'000'000};  ///< time for a stranger's hello, or to send the reason of a refusal
  std::optional<Contribution> waiting;

 private:
  std::deque<EncodedFrame> queue_;
  std::size_t sent_ = 0;
  bool listens_ = true;
};

/// One of the worlds that the ranks make, one after the other.
struct ServedWorld {
  struct Seat {
    Connection* connection = nullptr;
    bool taken = false;  ///< the rank has joined; taken without a connection: it has left or died
    RankState state = RankState::healthy;
    bool member = true;  ///< calls are collective over the ranks with this flag

    [[nodiscard]] bool asks() const {
      return connection != nullptr && connection->waiting && connection->waiting->for_survivors;
    }
    [[nodiscard]] bool contributes() const {
      return connection != nullptr && connection->waiting && !connection->waiting->for_survivors;
    }
  };
  explicit ServedWorld(std::size_t size) : seats(size) {}

  void send_to_all(const EncodedFrame& frame);
  /// Sends all `left` frames together: if hundreds of ranks leave at once, each remaining rank would otherwise be sent
  /// hundreds of single frames.
  void publish_left();
  /// A rank that waits in agree_on_survivors, or -1.
  [[nodiscard]] int first_that_asks() const;

  std::vector<Seat> seats;
  std::vector<EncodedFrame> failure_frames;  ///< frames of all failures so far, for ranks that join later
  std::vector<int> culprits;       ///< already reported to the ranks; -1: the launcher, whose failure ends the world
  bool broken = false;             ///< a member has failed since the last agreement on survivors, or the launcher has
  std::size_t ends_published = 0;  ///< number of failures in `ends_` that this world was notified of
  std::vector<std::byte> left;     ///< `left` frames that were not yet sent to the other ranks
};

}  // namespace detail

}  // namespace beeline
