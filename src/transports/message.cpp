// SPDX-License-Identifier: Apache-2.0
#include "transports/message.hpp"

namespace beeline {

constinit const std::string_view network_protocol = "beeline network 10, little-endian";

}  // namespace beeline
