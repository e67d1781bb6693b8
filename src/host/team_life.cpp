// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/impl/team_life.hpp"

#include <utility>

#include "core/fork.hpp"

namespace beeline::detail {

TeamLife::TeamLife(std::shared_ptr<const TeamLife> world) : world_(std::move(world)), fork_depth_(fork_depth()) {}

bool TeamLife::is_usable() const noexcept {
  return !is_forked() && !has_ended_.load(std::memory_order_relaxed) && (world_ == nullptr || world_->is_usable());
}

bool TeamLife::is_forked() const noexcept { return fork_depth_ != fork_depth(); }

}  // namespace beeline::detail
