// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which launcher started this process, and as which rank, according to the environment.

#include <string>

namespace beeline {

/// The program that started this process, and its data about the job.
struct Launcher {
  std::string name = "none";  ///< beeline, torchrun, mpirun, srun; none: no launcher, so a world of one rank
  std::string job;  ///< the job's identity, the same on all of its ranks and on no others; empty for beeline and none
  bool one_host = true;  ///< false: the launcher says that the ranks are on several hosts
  std::string address;   ///< MASTER_ADDR and MASTER_PORT + 1; if not set, srun's or mpirun's own host; else empty
};

/// A process's launcher and rank in a job.
struct Place {
  Launcher launcher;
  int rank = 0, size = 1;
};

/// Finds the launcher and this process's place in its job. Beeline's own variables (BEELINE_RANK, BEELINE_SIZE,
/// BEELINE_RENDEZVOUS, BEELINE_THREADS=1) come first: if the user has set one, the launcher is `beeline`, and Config
/// reads rank and size. Of `beeline run`, torchrun, mpirun (Open MPI, MPICH's Hydra) and srun the innermost launcher
/// counts: the fewest ancestors of this process were started with its variables, according to /proc. If /proc is not
/// readable, the first launcher in this order counts.
/// Throws invalid_argument, with the variable's name, if a variable is missing, is not a number, or contradicts
/// another.
[[nodiscard]] Place find_place();

}  // namespace beeline
