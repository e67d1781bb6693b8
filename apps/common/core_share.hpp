// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which core a host rank runs on where there is no core to spare.

#include "beeline/core/config.hpp"

namespace apps {

/// Binds this process and its later threads to one core, in turn by rank, if the ranks are processes without GPUs on
/// one node, have one computing thread each, are at least as many as the cores that this process may use, and have the
/// cores of their launcher, which then has bound none. A rank
/// that waits yields its core but does not sleep, so that it looks busy: the kernel may leave three of four ranks on a
/// core, or the threads of one rank on the core of another. Not for programs whose ranks wait for their engines'
/// threads, nor across nodes, where these threads carry tasks: they may need the core of another rank.
/// Returns the number of cores that the process could use before; 0 if it is not bound.
int stay_on_a_core(const beeline::Config& config);

/// Lets the calling thread, and threads that it starts later, use all cores again: for references that all cores make
/// while the ranks wait.
void leave_core();

}  // namespace apps
