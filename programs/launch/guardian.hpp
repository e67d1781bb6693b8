// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A small process that ends the ranks, and what they started, when the launcher disappears (kill -9).

#include <sys/types.h>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::launch {

class Guardian {
 public:
  /// Forks: to be made before any thread. Throws no_resource.
  Guardian();
  /// Tells the guardian that the job is over, and reaps it.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  /// Where a new process writes its id (a pid_t) once it leads a process group: the guardian then watches over it.
  [[nodiscard]] int descriptor() const { return pipe_.get(); }

 private:
  FileDescriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace beeline::launch
