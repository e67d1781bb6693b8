// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Variables by which torch, and other programs with its conventions, find a world: those that torchrun sets.

#include <string>

#include "beeline/runtime/file_descriptor.hpp"
#include "options.hpp"
#include "process.hpp"

namespace beeline::launch {

/// Of one job of ranks that are processes.
class TorchVariables {
 public:
  /// Throws no_resource.
  explicit TorchVariables(const Options& options);

  /// Adds those of a rank, and removes those of an outer torchrun. MASTER_ADDR and MASTER_PORT of the user's stay,
  /// unless the launcher is itself part of a job of torchrun's conventions.
  void add_to(Environment& changes, int rank) const;

 private:
  const Options& options_;
  std::string address_, port_;
  FileDescriptor reservation_;  ///< keeps the port from other programs of this machine until the job ends
};

}  // namespace beeline::launch
