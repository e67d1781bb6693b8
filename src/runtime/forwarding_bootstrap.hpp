// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A bootstrap that forwards to another one.

#include <memory>
#include <utility>
#include <vector>

#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

/// Forwards every call; derived classes override some.
class ForwardingBootstrap : public Bootstrap {
 public:
  explicit ForwardingBootstrap(std::unique_ptr<Bootstrap> bootstrap) : bootstrap_(std::move(bootstrap)) {}

  [[nodiscard]] int rank() const override { return bootstrap_->rank(); }
  [[nodiscard]] int size() const override { return bootstrap_->size(); }
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                              std::int64_t deadline_ns) override {
    return bootstrap_->allgather(mine, deadline_ns);
  }
  [[nodiscard]] std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) override {
    return bootstrap_->exchange_descriptors(mine, deadline_ns);
  }
  void set_neighbors(std::vector<int> ranks) override { bootstrap_->set_neighbors(std::move(ranks)); }
  void on_abort(AbortHandler handler) override { bootstrap_->on_abort(std::move(handler)); }
  void abort(const std::string& reason) override { bootstrap_->abort(reason); }
  [[nodiscard]] std::vector<RankHealth> health() const override { return bootstrap_->health(); }
  [[nodiscard]] std::vector<int> agree_on_survivors(std::int64_t deadline_ns) override {
    return bootstrap_->agree_on_survivors(deadline_ns);
  }
  void leave() override { bootstrap_->leave(); }

 private:
  const std::unique_ptr<Bootstrap> bootstrap_;
};

}  // namespace beeline
