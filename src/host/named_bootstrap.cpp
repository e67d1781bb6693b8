// SPDX-License-Identifier: Apache-2.0
#include "host/named_bootstrap.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {

/// The bytes of a contribution: the call's name, a zero byte, then `mine`.
std::vector<std::byte> framed(const std::string& call, std::span<const std::byte> mine) {
  const auto* name = reinterpret_cast<const std::byte*>(call.c_str());
  std::vector<std::byte> frame(name, name + call.size() + 1);
  frame.insert(frame.end(), mine.begin(), mine.end());
  return frame;
}

std::string name_in(const std::vector<std::byte>& frame) {
  const auto* text = reinterpret_cast<const char*>(frame.data());
  return {text, strnlen(text, frame.size())};
}

}  // namespace

std::string detail::different_calls(int rank, const std::string& call, int other, const std::string& other_call) {
  return fmt::format("rank {} is in {} while rank {} is in {}: all ranks make the same calls in the same order", rank,
                     call, other, other_call);
}

std::vector<std::vector<std::byte>> NamedBootstrap::allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) {
  std::vector<std::vector<std::byte>> all = ForwardingBootstrap::allgather(framed(call_, mine), deadline_ns);
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other].empty()) continue;  // the rank has failed or left
    const std::string theirs = name_in(all[other]);
    if (theirs != call_)
      throw Error(Status::invalid_argument, detail::different_calls(rank(), call_, static_cast<int>(other), theirs),
                  rank());
    all[other].erase(all[other].begin(), all[other].begin() + static_cast<std::ptrdiff_t>(theirs.size()) + 1);
  }
  return all;
}

}  // namespace beeline
