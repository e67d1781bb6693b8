// SPDX-License-Identifier: Apache-2.0
#include "transport/checks.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline {

void check_copy(const void* destination, const void* source, std::size_t bytes) {
  const auto to = reinterpret_cast<std::uintptr_t>(destination), from = reinterpret_cast<std::uintptr_t>(source);
  require(bytes == 0 || (to < from ? from - to : to - from) >= bytes, Status::invalid_argument,
          fmt::format("a copy of {} bytes from {} to {}: the two overlap", bytes, source, destination));
}

void check_signal(const std::uint64_t* signal) {
  require(reinterpret_cast<std::uintptr_t>(signal) % sizeof(*signal) == 0, Status::invalid_argument,
          fmt::format("the signal at {} is not aligned to {} bytes", fmt::ptr(signal), sizeof(*signal)));
}

}  // namespace beeline
