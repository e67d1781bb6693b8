// SPDX-License-Identifier: Apache-2.0
#include "runtime/tls/rendezvous_keys.hpp"

#include <fmt/format.h>

namespace beeline::detail {

namespace {

TlsKey key_of(const std::string& token, const std::string& identity) {
  return derive_tls_key(token, {}, "beeline rendezvous: " + identity);
}

}  // namespace

std::string rendezvous_identity(int rank, int size) { return fmt::format("rank {} of {}", rank, size); }

std::unique_ptr<TlsSession> greet_rendezvous(const std::string& token, int rank, int size) {
  const std::string identity = rendezvous_identity(rank, size);
  return make_tls_client(identity, key_of(token, identity));
}

std::unique_ptr<TlsSession> serve_rendezvous(const std::string& token) {
  return make_tls_server([token](const std::string& identity) { return key_of(token, identity); });
}

}  // namespace beeline::detail
