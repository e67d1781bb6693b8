// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the ranks of a world exchange, with the name of the call that they are in.

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

  /// As the bootstrap's. Throws invalid_argument, on every rank, where ranks are in different functions; names both.
  /// Descriptors carry no names: each function makes such a call before and after them.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) override;

 private:
  std::string call_ = "World::create";
};

namespace detail {

/// What two ranks say that are in different collective functions.
[[nodiscard]] std::string different_calls(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace detail

}  // namespace beeline
