// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's connection to the rendezvous server.

#include <memory>

#include "beeline/core/config.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// Who runs the rendezvous server.
struct ServerHost {
  int rank = -1;                             ///< the rank whose process runs it; -1: the launcher
  std::unique_ptr<RendezvousServer> server;  ///< on that rank; lives until the others have left it
};

/// Connects to `config.rendezvous` as `config.rank`; others may be missing still. Throws unreachable (nobody listens,
/// or what listens is no Beeline server), invalid_argument (refused, with the server's reason), deadline.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_bootstrap(const Config& config, const Deadline& deadline,
                                                           ServerHost host = {});

}  // namespace beeline::detail
