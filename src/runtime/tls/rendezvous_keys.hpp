// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keys of the connections between ranks and the rendezvous server. Each rank has one, derived from the token, which is
/// not sent.

#include <string>

#include "runtime/tls/session.hpp"

namespace beeline::detail {

/// The identity to which the key of a rank in a world of `size` ranks belongs.
[[nodiscard]] std::string rendezvous_identity(int rank, int size);
/// A rank's end of a connection. Throws as `make_tls_client`.
[[nodiscard]] std::unique_ptr<TlsSession> greet_rendezvous(const std::string& token, int rank, int size);
/// The server's end. Whether the rank is in the world is checked later, in its hello. Throws as `make_tls_server`.
[[nodiscard]] std::unique_ptr<TlsSession> serve_rendezvous(const std::string& token);

}  // namespace beeline::detail
