// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// TLS of connections between ranks. The key of a pair of ranks is derived from the token, from the number of the
/// world, and from a secret of the accepting rank, which only ranks of the world know. So the key is valid for this
/// pair in this world only.

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/tls/session.hpp"
#include "transports/network_plan.hpp"

namespace beeline {

[[nodiscard]] inline std::string connection_identity(int from, int to) {
  return fmt::format("rank {} to {}", from, to);
}

[[nodiscard]] inline detail::TlsKey connection_key(const NetworkPlan& plan, std::span<const std::byte> secret,
                                                   const std::string& identity) {
  const std::string_view shown(reinterpret_cast<const char*>(secret.data()), secret.size());
  const std::string_view world(reinterpret_cast<const char*>(&plan.world), sizeof plan.world);
  return detail::derive_tls_key(plan.token + std::string(shown), world, "beeline data: " + identity);
}

/// This rank's end of a connection that it opens; nullptr if the world's connections are not encrypted.
///   secret  of `peer`
[[nodiscard]] inline std::unique_ptr<detail::TlsSession> dialing_session(const NetworkPlan& plan, int peer,
                                                                         std::span<const std::byte> secret) {
  const std::string identity = connection_identity(plan.rank, peer);
  return plan.is_secure ? detail::make_tls_client(identity, connection_key(plan, secret, identity)) : nullptr;
}

/// This rank's end of a connection that it accepts; nullptr if the world's connections are not encrypted.
///   secret  of this rank
[[nodiscard]] inline std::unique_ptr<detail::TlsSession> accepting_session(const NetworkPlan& plan,
                                                                           std::span<const std::byte> secret) {
  if (!plan.is_secure) return nullptr;
  return detail::make_tls_server([&plan, secret](const std::string& identity) -> std::optional<detail::TlsKey> {
    for (int from = 0; from < plan.rank; ++from)
      if (identity == connection_identity(from, plan.rank)) return connection_key(plan, secret, identity);
    return std::nullopt;
  });
}

}  // namespace beeline
