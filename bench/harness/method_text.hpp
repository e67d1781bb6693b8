// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the identifiers of methods mean.

#include <string>

namespace beeline::bench {

struct MethodText {
  std::string summary;  ///< one line
  std::string needs;    ///< of the machine and the build
};

/// Of a method of the library, `control/algorithm`, or of a peer, `peer/how`.
[[nodiscard]] MethodText text_of(const std::string& method);

}  // namespace beeline::bench
