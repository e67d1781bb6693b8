// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// GPUDirect Storage: files to GPU memory and back without host memory between, by NVIDIA's libcufile, which is opened
/// at run time.

#include <memory>
#include <string>

#include "hpe/files/block_io.hpp"
#include "hpe/files/open_file.hpp"

namespace beeline::hpe::detail {

/// Why this process does not use it; empty if it does.
[[nodiscard]] const std::string& no_gds_reason();

/// Calls on memory of a GPU at any offset and length, by threads. The file must have `direct()`, and live longer.
/// Returns nullptr if its file system does not take part.
[[nodiscard]] std::unique_ptr<BlockIo> make_gds_io(const OpenFile& file, unsigned calls);

}  // namespace beeline::hpe::detail
