// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Failures of a network's engine: reports to the world and to other nodes, and what the survivors complete after them.

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transports/network_engine.hpp"
#include "transports/remote_exchange.hpp"
#include "transports/turns.hpp"

namespace beeline {

/// Any thread calls it.
class NetworkFailures {
 public:
  ///   exchange  used in turns
  NetworkFailures(RemoteExchange& exchange, WorkTurns& turns, FailureEvents events)
      : exchange_(exchange), turns_(turns), events_(std::move(events)) {}

  /// Keeps a reference to `client`. Before the other functions.
  void serve(const EngineClient& client) { client_ = &client; }
  /// Reports what has failed since the last call, and sends this rank's aborts. Returns whether there was anything.
  bool report();

  // As the functions of Engine.

  void end_sources(const std::vector<int>& peers);
  [[nodiscard]] std::vector<int> settle(const std::vector<int>& left, std::int64_t deadline_ns);
  void forget();

 private:
  bool send_aborts();
  /// Whether the world is aborted, this rank's kernels see it, and the survivors have not settled yet.
  bool is_abort_seen();
  /// Work that this rank completes after a failure, and for how long a peer may make no progress with it before the
  /// peer is given up.
  struct Ending {
    const char* what;
    std::uint64_t limit_ns;
    bool may_copy = false;  ///< copies the sources instead, so that the peer need not be given up
  };
  /// Progress of a peer, and since when it has made none.
  struct Waited {
    std::uint64_t progress = 0, since_ns = 0;
    bool has_ended = false;
  };
  /// Works until `is_over(peer)` for each of the peers that is not given up. Waits for all at once: of many that do not
  /// answer, the last is given up no later than the first.
  template <class IsOver>
  void work_until(const std::vector<int>& peers, const Ending& ending, IsOver is_over);
  void give_up(int peer, const Ending& ending);
  /// What this rank still expects from a peer, for logs and errors.
  [[nodiscard]] std::string missing_from(int peer) const;

  [[nodiscard]] int rank() const { return exchange_.peers.plan().rank; }
  [[nodiscard]] const RemotePeer& peer_of(int peer) const { return exchange_.peers[static_cast<std::uint32_t>(peer)]; }
  [[nodiscard]] bool is_remote(int peer) const { return peer_of(peer).is_remote; }

  RemoteExchange& exchange_;
  WorkTurns& turns_;
  const FailureEvents events_;
  const EngineClient* client_ = nullptr;
  std::mutex report_mutex_;                                 ///< held while failures are reported
  std::array<std::uint64_t, max_teams> reported_aborts_{};  ///< abort words that the other nodes know
  struct WorldAbort {
    enum Stage { unseen, seen, over } stage = unseen;  ///< whether the kernels see it, or the survivors have settled
    std::uint64_t word = 0;                            ///< 0: the world is not aborted
  } world_abort_;
};

}  // namespace beeline
