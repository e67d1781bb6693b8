// SPDX-License-Identifier: Apache-2.0
// UCX's row in builds that did not find its headers.
#include "transports/transport.hpp"

namespace beeline {

extern const TransportRow ucx_transport;
constinit const TransportRow ucx_transport = {
    .name = "ucx",
    .reason =
        [] {
          return std::string(
              "ranks on several nodes need UCX, whose headers this build did not find: install Debian's libucx-dev, or "
              "PyPI's libucx-cu13, and build again");
        },
    .is_built = false};

}  // namespace beeline
