// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <cstdint>
#include <memory>
#include <string>
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

/// A method's name and how to make it.
struct MethodInfo {
  std::string name, summary;
  std::unique_ptr<Method> (*make)(Domain&);
  bool needs_gpu = false;  ///< does not run on host ranks
};

/// The methods of the program `himeno`, the host's first. Method 7 has a program of its own: device_launched.hpp.
[[nodiscard]] const std::vector<MethodInfo>& methods();
/// The method of that name among `all`; throws invalid_argument listing the known ones.
[[nodiscard]] const MethodInfo& find_method(const std::vector<MethodInfo>& all, const std::string& name);

[[nodiscard]] std::unique_ptr<Method> make_host_staged(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_host_copy_engine(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_stream_kernels(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_in_kernel(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_block_signals(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_global_address_space(Domain& domain);
[[nodiscard]] std::unique_ptr<Method> make_persistent(Domain& domain);

}  // namespace himeno
