// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Segments of symmetric heaps for torch's caching allocator.

namespace beeline::python {

/// At the program's end, when worlds have been left: lets go of them.
void end_memory_pools();

}  // namespace beeline::python
