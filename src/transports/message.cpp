// SPDX-License-Identifier: Apache-2.0
#include "transports/message.hpp"

namespace beeline {

std::string_view network_protocol() noexcept { return "beeline network 13, little-endian"; }

}  // namespace beeline
