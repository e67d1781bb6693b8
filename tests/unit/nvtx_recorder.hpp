// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the NVTX tool of tests (nvtx_recorder.cpp) has seen of the domain `beeline`. NVTX loads the tool, as it loads a
/// profiler; the test finds the function in it by its name.

namespace beeline_test {

struct NvtxCounts {
  int pushed;   ///< ranges of the name that was asked for
  int popped;   ///< ranges of any name
  int open;     ///< pushed and not popped
  int foreign;  ///< ranges of other domains
};

/// Type of `beeline_nvtx_counts`.
using CountNvtxRanges = NvtxCounts(const char* name);

}  // namespace beeline_test
