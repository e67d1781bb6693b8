// SPDX-License-Identifier: Apache-2.0
#include "transport/checks.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

bool moves_anything(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return false;
  const auto refuse_if = [&](bool condition, const char* why) {
    if (condition)
      throw Error(Status::invalid_argument,
                  fmt::format("a copy of {} bytes from {} to {}: {}", bytes, source, destination, why));
  };
  refuse_if(destination == nullptr || source == nullptr, "one is a null address");
  if (destination == source) return false;
  const auto to = reinterpret_cast<std::uintptr_t>(destination), from = reinterpret_cast<std::uintptr_t>(source);
  refuse_if((to < from ? from - to : to - from) < bytes, "the two overlap");
  return true;
}

void check_signal(const std::uint64_t* signal) {
  if (reinterpret_cast<std::uintptr_t>(signal) % sizeof(*signal) != 0)  // makes no text in the usual case
    throw Error(Status::invalid_argument,
                fmt::format("the signal at {} is not aligned to {} bytes", fmt::ptr(signal), sizeof(*signal)));
}

void refuse_capture(std::string_view what, std::string_view why) {
  throw Error(Status::unavailable, fmt::format("{} cannot be captured in a graph: {}", what, why));
}

void refuse_captured(const Stream& stream, std::string_view what, std::string_view why) {
  if (stream.capture() != 0) refuse_capture(what, why);
}

}  // namespace beeline
