// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The main function of the application's programs.

#include <vector>

#include "method.hpp"

namespace himeno {

/// Reads the command line and runs what it asks for with these methods. Returns what main should: 0; 1 when a rank or a
/// verification failed; 2, said once by rank 0, for what is refused before anything is allocated.
[[nodiscard]] int run_program(int argc, char** argv, const std::vector<MethodInfo>& methods);

}  // namespace himeno
