// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/version.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline {

std::string Version::text() const {
  const std::int32_t version = number / 1000;
  return fmt::format("{}.{}.{} (interface {}{})", version / 10000, version / 100 % 100, version % 100, number % 1000,
                     layout == 0 ? "" : fmt::format(", layout {:016x}", layout));
}

void detail::require_same_version(const char* function, const Version& headers, const Version& library) {
  require(headers == library, Status::unavailable,
          fmt::format("{}: the program was compiled with headers of Beeline {}, and runs with a library of Beeline {}: "
                      "compile the program again with the library's headers",
                      function, headers.text(), library.text()));
}

}  // namespace beeline
