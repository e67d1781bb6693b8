// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <vector>

#include "common/method.hpp"
#include "domain.hpp"

namespace jacobi {

/// One method to run iterations with their halo exchange. Constructors and destructors are collective.
class Method : public apps::MethodOn<Domain> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `iterations` more iterations, and returns when this rank's iterations are over. `Domain::reset`
  /// must come before the first run of a method, and before a run that follows one without communication. Without
  /// `communicate` only the computation runs, and halos stay as they are. Throws the error of a failed wait: deadline,
  /// aborted, peer_died.
  virtual void run(int iterations, bool communicate) = 0;

 protected:
  [[nodiscard]] Domain& domain() const { return data(); }
};

/// A method; its id names the control, path and protocol by which rows move.
using MethodInfo = apps::MethodInfo<Method, Domain>;

/// Every method, the host's first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo host();
[[nodiscard]] MethodInfo stream();
[[nodiscard]] MethodInfo proxy();
[[nodiscard]] MethodInfo proxy_device();
[[nodiscard]] MethodInfo triggered();
[[nodiscard]] MethodInfo triggered_device();
[[nodiscard]] MethodInfo task();
[[nodiscard]] MethodInfo device();

}  // namespace jacobi
