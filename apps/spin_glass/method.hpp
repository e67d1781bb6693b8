// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <vector>

#include "common/method.hpp"
#include "domain.hpp"

namespace spin_glass {

/// One method to run sweeps with their exchange of planes. Constructors and destructors are collective.
class Method : public apps::MethodOn<Domain> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `sweeps` more sweeps, each of both colours, and returns when this rank's part is over and the
  /// halos have arrived. Without `communicate` only the computation runs, and halos stay as they are: `Domain::reset`
  /// must follow. Throws the error of a failed wait: deadline, aborted, peer_died.
  virtual void run(int sweeps, bool communicate) = 0;

 protected:
  [[nodiscard]] Domain& domain() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Domain>;

/// Every method, the one without peer access first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo off();
[[nodiscard]] MethodInfo receive();
[[nodiscard]] MethodInfo both();
[[nodiscard]] MethodInfo device();

}  // namespace spin_glass
