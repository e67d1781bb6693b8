// SPDX-License-Identifier: Apache-2.0
// The network of builds that found no headers of UCX.
#include "beeline/core/error.hpp"
#include "beeline/network/network.hpp"
#include "network/network_engine.hpp"

namespace beeline {

std::string no_network_reason() {
  return "ranks on several nodes need UCX, whose headers this build did not find: install Debian's libucx-dev, or "
         "PyPI's libucx-cu13, and build again";
}

std::unique_ptr<Engine> make_network_engine(Bootstrap&, NetworkPlan, NetworkNews) {
  throw Error(Status::unavailable, no_network_reason());
}

}  // namespace beeline
