// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server through which ranks that are processes find each other. The launcher owns a server; under a launcher
/// without a server, rank 0 owns it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/core/status.hpp"

namespace beeline {

/// Why a world failed, or went on with fewer ranks.
struct WorldFailure {
  int culprit = -1;                 ///< rank, or -1 when no rank is to blame
  Status status = Status::aborted;  ///< status of the ranks' calls: aborted or peer_died
  std::string reason;               ///< one line
  int noticed_by = -1;              ///< rank, or -1: the server or its launcher
};

/// Serves the worlds of one job on a separate thread: all-gathers, and reports of ranks that died or aborted. A rank
/// may make several worlds, one after the other or at the same time; the n-th worlds of all ranks are one world. A
/// client without the token, with a wrong size, or with a rank that another process has, is refused with a reason and
/// does not disturb other clients. A client that has not sent the token within 10 s is dropped; if there are too many
/// such clients, the oldest are dropped earlier. A `secure` server closes connections without the token's key, and
/// answers nothing.
class RendezvousServer {
 public:
  struct Options {
    int size = 1;                       ///< ranks in the world
    std::string token;                  ///< the world's secret, from make_token()
    std::string address = "127.0.0.1";  ///< host[:port] to listen on; without a port the system chooses one
    bool secure = false;                ///< TLS with a key from the token: as `Config::secure`, on all ranks
  };

  /// Begins to listen. Throws invalid_argument (size, token, address), unreachable (the address does not belong to
  /// this machine, or is in use) or unavailable (`secure`, without OpenSSL).
  explicit RendezvousServer(Options options);
  /// Closes every connection: ranks that are still connected see that their launcher has ended.
  ~RendezvousServer();

  /// host:port for BEELINE_RENDEZVOUS.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Accepts no further clients; clients that have joined stay.
  void close();
  /// Blocks until every rank that has joined has left, or did not continue after a failure was reported to it; for at
  /// most `nanoseconds`.
  void await_departure(std::int64_t nanoseconds);

  /// Reports to every rank, also to ranks that join later, that `culprit` has failed (-1: the launcher ends all
  /// worlds). The first failure of each culprit stays.
  void abort(int culprit, const std::string& reason);

  /// Records that the process of `rank` has ended: a world that waits for `rank` to join fails at once, with `rank` as
  /// culprit.
  void expect_no_more(int rank);
  /// Whether a world has failed because `rank` had ended before it joined.
  [[nodiscard]] bool is_missed(int rank) const;

  /// The first failure that ended a world: abort(), or a connection that closed without leaving, which end all worlds,
  /// or a rank's abort of one world.
  [[nodiscard]] std::optional<WorldFailure> failure() const;

  /// The failures since the last call, in order.
  [[nodiscard]] std::vector<WorldFailure> take_failures();

  /// A descriptor for poll(), which is readable while take_failures() would return at least one failure.
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
