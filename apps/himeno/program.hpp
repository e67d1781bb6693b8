// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The main function of the application's programs.

#include <vector>

#include "method.hpp"

namespace himeno {

/// Reads the command line and runs the requested methods. Returns the exit code of main: 0; 1 when a rank or a
/// verification failed; 2 when the request is refused before anything is allocated, which only rank 0 reports.
[[nodiscard]] int run_program(int argc, char** argv, const std::vector<MethodInfo>& methods);

}  // namespace himeno
