// SPDX-License-Identifier: Apache-2.0
// The row of sockets in builds that did not find Asio's headers.
#include "transports/transport.hpp"

namespace beeline {

extern const TransportRow sockets_transport;
constinit const TransportRow sockets_transport = {
    .name = "sockets",
    .reason =
        [] {
          return std::string(
              "sockets between nodes need Asio, whose headers this build did not find: install Debian's "
              "libasio-dev, and build again");
        },
    .is_built = false,
    .encrypts = true};

}  // namespace beeline
