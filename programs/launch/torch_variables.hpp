// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Variables by which torch, and other programs with its conventions, find a world: the variables that torchrun sets.

#include <string>

#include "beeline/runtime/file_descriptor.hpp"
#include "options.hpp"
#include "process.hpp"

namespace beeline::launcher {

/// The variables for one job whose ranks are processes.
class TorchVariables {
 public:
  /// Throws no_resource.
  explicit TorchVariables(const Options& options);

  /// Adds the variables of a rank, and removes those of an outer torchrun. MASTER_ADDR and MASTER_PORT set by the user
  /// stay, unless the launcher itself runs inside a job with torchrun's conventions.
  void add_to(Environment& changes, int rank) const;

 private:
  const Options& options_;
  std::string address_, port_;
  FileDescriptor reservation_;  ///< keeps the port from other programs of this machine until the job ends
};

}  // namespace beeline::launcher
