// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the ranks of a world exchange, with the name of the call that they are in.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

/// Adds the name of the calling rank's function to its contribution, and compares names before anyone looks at the
/// rest: the bytes of one function are never taken for those of another.
class NamedBootstrap final : public Bootstrap {
 public:
  explicit NamedBootstrap(std::unique_ptr<Bootstrap> bootstrap) : bootstrap_(std::move(bootstrap)) {}

  /// From here on this rank is in the collective function `call`.
  void enter(const char* call) { call_ = call; }

  [[nodiscard]] int rank() const override { return bootstrap_->rank(); }
  [[nodiscard]] int size() const override { return bootstrap_->size(); }
  /// As the bootstrap's. Throws invalid_argument, on every rank, where ranks are in different functions; names both.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) override;
  /// Names are compared by the calls before and after it, of which each function makes one.
  [[nodiscard]] std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) override {
    return bootstrap_->exchange_descriptors(mine, deadline_ns);
  }
  void on_abort(AbortHandler handler) override { bootstrap_->on_abort(std::move(handler)); }
  void abort(const std::string& reason) override { bootstrap_->abort(reason); }
  [[nodiscard]] std::vector<RankHealth> health() const override { return bootstrap_->health(); }
  [[nodiscard]] std::vector<int> agree_on_survivors(std::int64_t deadline_ns) override {
    return bootstrap_->agree_on_survivors(deadline_ns);
  }
  void leave() override { bootstrap_->leave(); }

 private:
  const std::unique_ptr<Bootstrap> bootstrap_;
  std::string call_ = "World::create";
};

namespace detail {

/// What two ranks say that are in different collective functions.
[[nodiscard]] std::string different_calls(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace detail

}  // namespace beeline
