// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The main function of a Beeline program.

#include <functional>

#include "beeline/host/world.hpp"

namespace beeline {

/// Runs `body` once for each rank of this process: once under `beeline run -n N` and without a launcher, N times on N
/// threads under `beeline run -n N --threads`. Returns the exit status for `main`: 0, or 1 after printing each rank's
/// error. The first printed error belongs to a rank that did not fail because of another rank. An exception in one rank
/// aborts the world, which ends the other ranks too. A rank that is a thread and calls `exit` ends the process with an
/// error that says so, not with status 0. `_exit` ends the process as well, without an error.
///   int main() { return beeline::run([](beeline::World& world) { ... }); }
int run(const std::function<void(World&)>& body, Version headers = detail::world_headers);
int run(const Config& config, const std::function<void(World&)>& body, Version headers = detail::world_headers);

}  // namespace beeline
