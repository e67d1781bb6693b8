// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Who started this process, and as which rank, as the environment tells.

#include <string>

namespace beeline {

/// The program that started this process, and what it says about the job.
struct Launcher {
  std::string name = "none";  ///< beeline, torchrun, mpirun, srun; none: nobody says anything, a world of one
  std::string job;       ///< the job's identity, equal on its ranks and in no other job; empty for beeline and none
  bool one_host = true;  ///< false: the launcher says that the ranks are on several hosts
  std::string address;   ///< MASTER_ADDR and the port after MASTER_PORT; empty where they are not set
};

/// A rank's place in a job.
struct Place {
  Launcher launcher;
  int rank = 0, size = 1;
};

/// Beeline's own variables (BEELINE_RANK, BEELINE_SIZE, BEELINE_RENDEZVOUS, BEELINE_THREADS=1) come first: where one is
/// set, the launcher is `beeline`, and rank and size are left for Config to read. Then torchrun, mpirun (Open MPI, then
/// MPICH's Hydra) and srun, the innermost first as they are usually nested.
/// Throws invalid_argument naming the variable that is missing, is no number, or contradicts another.
[[nodiscard]] Place find_place();

}  // namespace beeline
