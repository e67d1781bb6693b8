// SPDX-License-Identifier: Apache-2.0
#include "gaspi/process.hpp"

namespace beeline::gaspi {

std::vector<std::unique_ptr<Extension>> make_extensions() { return {}; }

}  // namespace beeline::gaspi
