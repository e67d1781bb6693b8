// SPDX-License-Identifier: Apache-2.0
// TLS in builds that did not find OpenSSL's headers.
#include "beeline/core/error.hpp"
#include "runtime/tls/session.hpp"

namespace beeline::detail {

std::string tls_reason() {
  return "encrypted connections (--secure) need OpenSSL, whose headers this build did not find: install Debian's "
         "libssl-dev, and build again";
}

TlsKey derive_tls_key(std::string_view, std::string_view, std::string_view) {
  throw Error(Status::unavailable, tls_reason());
}

std::unique_ptr<TlsSession> make_tls_client(std::string, const TlsKey&, std::uint64_t) {
  throw Error(Status::unavailable, tls_reason());
}

std::unique_ptr<TlsSession> make_tls_server(FindTlsKey) { throw Error(Status::unavailable, tls_reason()); }

}  // namespace beeline::detail
