// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranges of the domain `beeline` that the NVTX tool of the tests (nvtx_recorder.cpp) has counted. NVTX loads the tool
/// as it loads a profiler; the test looks up the function in the tool by its name.

namespace beeline_test {

struct NvtxCounts {
  int pushed;   ///< ranges with the given name
  int popped;   ///< ranges of any name
  int open;     ///< pushed and not popped
  int foreign;  ///< ranges of other domains
};

/// Type of `beeline_nvtx_counts`.
using CountNvtxRanges = NvtxCounts(const char* name);

}  // namespace beeline_test
