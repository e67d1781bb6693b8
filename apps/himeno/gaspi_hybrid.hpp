// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The method by GASPI's C functions. It has its own library and its own program, because a process that calls them is
/// one GASPI rank: ranks of this program are processes.

#include "method.hpp"

namespace himeno {

/// Its constructor calls gaspi_proc_init; it throws unavailable if GASPI's ranks are not those of the world, as with
/// ranks that are threads.
[[nodiscard]] MethodInfo gaspi_hybrid();

}  // namespace himeno
