// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <memory>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/method.hpp"
#include "values.hpp"

namespace global_reduction {

/// One method to reduce the values of all ranks to one. Constructors and destructors are collective.
class Method : public apps::MethodOn<Values> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Runs `reductions` reductions of the same values in a row. Each leaves the sum over the ranks in
  /// `Values::global` of every rank before the next begins. Returns when this rank's part is over. Throws the error of
  /// a failed wait: deadline, aborted, peer_died.
  virtual void run(int reductions) = 0;

 protected:
  [[nodiscard]] Values& values() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Values>;

/// Every method, the baseline first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] std::unique_ptr<Method> make_mpi(Values& values);
[[nodiscard]] std::string why_no_mpi(const beeline::Config& config);
[[nodiscard]] MethodInfo on_stream();
[[nodiscard]] MethodInfo in_kernel();
[[nodiscard]] MethodInfo persistent();

/// Finalizes MPI if a method has initialized it. To be called before the program ends.
void finish_mpi();

}  // namespace global_reduction
