// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's connection to the rendezvous server.

#include <memory>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// The process that runs the rendezvous server.
struct ServerHost {
  int rank = -1;                             ///< the rank whose process runs it; -1: the launcher
  std::unique_ptr<RendezvousServer> server;  ///< on that rank; lives until the other ranks have left it
};

/// The server has another token: it may be that of another world.
class WrongToken final : public Error {
  using Error::Error;
};

/// Connects to `config.rendezvous` as `config.rank`; other ranks may not have joined yet. Throws unreachable (no
/// program listens, or one that is not a Beeline server), invalid_argument (refused; has the server's reason;
/// `WrongToken` for that reason), deadline.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_bootstrap(const Config& config, const Deadline& deadline,
                                                           ServerHost host = {});

}  // namespace beeline::detail
