// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges among the ranks of a world that carry the name of the collective call.

#include <string>
#include <vector>

#include "runtime/forwarding_bootstrap.hpp"

namespace beeline {

/// Adds the name of the called function to each rank's contribution, and compares the names first: so bytes of one
/// function are never taken for those of another.
class NamedBootstrap final : public ForwardingBootstrap {
 public:
  using ForwardingBootstrap::ForwardingBootstrap;

  /// From here on this rank is in the collective function `call`.
  void enter(const char* call) { call_ = call; }

  /// As `Bootstrap::allgather`. Throws invalid_argument on every rank, naming both functions, if ranks are in different
  /// functions. Exchanges of descriptors carry no names: each function calls `allgather` before and after them.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) override;

 private:
  std::string call_ = "World::create";
};

namespace detail {

/// Text of the error of two ranks in different collective functions.
[[nodiscard]] std::string different_calls(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace detail

}  // namespace beeline
