// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server through which ranks that are processes find each other. The launcher owns one; under launchers without
/// one, rank 0 does.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/core/status.hpp"

namespace beeline {

/// Why a world ended before its time, or went on with fewer ranks.
struct WorldFailure {
  int culprit = -1;                 ///< rank, or -1 when no rank is to blame
  Status status = Status::aborted;  ///< what the ranks' calls return: aborted or peer_died
  std::string reason;               ///< one line
  int noticed_by = -1;              ///< rank, or -1: the server or its launcher
};

/// Serves the worlds of one job from a thread of its own: allgathers, and the news that a rank died or aborted. A rank
/// may make several worlds, one after the other or at once; its first meets the others' first, and so on. A client
/// without the token, with a wrong size, or with a rank that another process has, is refused with a reason and does not
/// disturb the others. A client that has not shown the token within 10 s is dropped, the oldest of them earlier if they
/// are too many.
class RendezvousServer {
 public:
  struct Options {
    int size = 1;                       ///< ranks in the world
    std::string token;                  ///< the world's secret, from make_token()
    std::string address = "127.0.0.1";  ///< host[:port] to listen on; without a port the system chooses one
  };

  /// Begins to listen. Throws invalid_argument (size, token, address) or unreachable (the address is not one of this
  /// machine, or is in use).
  explicit RendezvousServer(Options options);
  /// Closes every connection: ranks that are still connected see that their launcher has ended.
  ~RendezvousServer();

  /// host:port for BEELINE_RENDEZVOUS.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Accepts no further clients; those that have joined stay.
  void close();
  /// Blocks until every rank that has joined has left, or was told of a failure after which it did not continue; for at
  /// most `nanoseconds`.
  void await_departure(std::int64_t nanoseconds);

  /// Tells every rank, those that join later included, that `culprit` has failed (-1: that the launcher ends all
  /// worlds). The first failure of each culprit stays.
  void abort(int culprit, const std::string& reason);

  /// Says that the process of `rank` has ended: a world that waits for it to join fails at once, because of this rank.
  void expect_no_more(int rank);
  /// Whether a world has failed because `rank` had ended before it joined.
  [[nodiscard]] bool is_missed(int rank) const;

  /// The first failure that ended a world: abort() or a connection that closed without goodbye, which end all worlds,
  /// or a rank's abort, which ends the world that it speaks of.
  [[nodiscard]] std::optional<WorldFailure> failure() const;

  /// The failures since the last call, in order.
  [[nodiscard]] std::vector<WorldFailure> take_failures();

  /// A descriptor for poll(), which is readable while take_failures() would return failures.
  [[nodiscard]] int failure_descriptor() const noexcept;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// The address of this machine on the route to `endpoint`, host[:port]. Sends no packet. Throws invalid_argument (a
/// name that is not known) or unreachable (no route).
[[nodiscard]] std::string own_address_towards(const std::string& endpoint);

/// A new secret: 128 random bits as 32 hexadecimal digits.
[[nodiscard]] std::string make_token();

}  // namespace beeline
