// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server through which ranks that are processes find each other. The launcher owns one.

#include <memory>
#include <optional>
#include <string>

#include "beeline/core/status.hpp"

namespace beeline {

/// Why a world ended before its time.
struct WorldFailure {
  int culprit = -1;                 ///< rank, or -1 when no rank is to blame
  Status status = Status::aborted;  ///< what the ranks' calls return: aborted or peer_died
  std::string reason;               ///< one line
};

/// Serves one world from a thread of its own: allgathers, and the news that a rank died or aborted. A client without
/// the token, or with a wrong size or a rank that is taken, is refused with a reason and does not disturb the others.
class RendezvousServer {
 public:
  struct Options {
    int size = 1;                       ///< ranks in the world
    std::string token;                  ///< the world's secret, from make_token()
    std::string address = "127.0.0.1";  ///< host[:port] to listen on; without a port the system chooses one
  };

  /// Listens from now on. Throws invalid_argument (size, token, address) or unreachable (the address is not ours, or in
  /// use).
  explicit RendezvousServer(Options options);
  /// Closes every connection: ranks that are still connected see that their launcher has ended.
  ~RendezvousServer();

  /// host:port for BEELINE_RENDEZVOUS.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Tells every rank, those that join later included, that the world has ended. The first failure stays.
  void abort(int culprit, const std::string& reason);

  /// The failure that ended the world: the first of abort(), a rank's abort, and a connection that closed without
  /// goodbye.
  [[nodiscard]] std::optional<WorldFailure> failure() const;

  /// Descriptor that is readable, for poll(), once failure() has a value.
  [[nodiscard]] int failure_descriptor() const noexcept;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// A new secret: 128 random bits as 32 hexadecimal digits.
[[nodiscard]] std::string make_token();

}  // namespace beeline
