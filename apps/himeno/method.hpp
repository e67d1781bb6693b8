// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <vector>

#include "common/launch_window.hpp"
#include "common/method.hpp"
#include "domain.hpp"

namespace himeno {

using apps::LaunchWindow;

/// One way of running iterations with their communication. Constructors and destructors are collective.
class Method : public apps::MethodOn<Domain> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `iterations` iterations from iteration 0 (`Domain::reset`) and returns when this rank's are over.
  /// Afterwards `Domain::gosa` is the last iteration's. Without `communicate` only the computation runs: halos stay as
  /// they are and nothing is summed over ranks.
  /// Throws what a wait met: deadline, aborted, peer_died.
  virtual void run(int iterations, bool communicate) = 0;

 protected:
  [[nodiscard]] Domain& domain() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Domain>;
using apps::find_method;

/// The methods of the program `himeno`, the host's first. Method 7 has a program of its own: device_launched.hpp.
[[nodiscard]] const std::vector<MethodInfo>& methods();
[[nodiscard]] MethodInfo host_staged();
[[nodiscard]] MethodInfo host_copy_engine();
[[nodiscard]] MethodInfo stream_kernels();
[[nodiscard]] MethodInfo in_kernel();
[[nodiscard]] MethodInfo block_signals();
[[nodiscard]] MethodInfo global_address_space();
[[nodiscard]] MethodInfo persistent();

}  // namespace himeno
