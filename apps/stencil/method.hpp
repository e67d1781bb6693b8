// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list: the four listings of seed 001.

#include <cstdint>
#include <vector>

#include "common/method.hpp"
#include "volume.hpp"

namespace stencil {

/// One method to run steps with their halo exchange.
class Method : public apps::MethodOn<const Setup> {
 public:
  using MethodOn::MethodOn;

  /// Sets the initial values. Blocking.
  virtual void reset() = 0;
  /// Runs `steps` more steps, and returns when they are over. Without `communicate` only the computation runs, and
  /// halos stay as they are: `reset` must come before the next run with communication.
  virtual void run(int steps, bool communicate) = 0;
  /// The field, [z + 8][y + 8][x + 8], boundary included.
  [[nodiscard]] virtual std::vector<float> gather() = 0;

 protected:
  [[nodiscard]] const Setup& setup() const { return data(); }
};

/// Base of the methods that name copies or addresses themselves.
class MethodOnVolume : public Method {
 public:
  explicit MethodOnVolume(const Setup& setup) : Method(setup), volume_(setup) {}
  void reset() final {
    volume_.reset();
    step_ = 0;
  }
  [[nodiscard]] std::vector<float> gather() final { return volume_.gather(step_); }

 protected:
  [[nodiscard]] Volume& volume() { return volume_; }
  /// The number of the next step; the caller runs `steps` of them.
  [[nodiscard]] std::uint64_t take_steps(int steps) {
    const std::uint64_t first = step_;
    step_ += static_cast<std::uint64_t>(steps);
    return first;
  }

 private:
  Volume volume_;
  std::uint64_t step_ = 0;
};

using MethodInfo = apps::MethodInfo<Method, const Setup>;

/// Every method, in the order of the seed's listings.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo proxy();
[[nodiscard]] MethodInfo shared_devices();
[[nodiscard]] MethodInfo unified();
[[nodiscard]] MethodInfo objects();

}  // namespace stencil
