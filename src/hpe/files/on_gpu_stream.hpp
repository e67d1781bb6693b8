// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A transfer of a file in the order of a GPU's stream.

#include <memory>

#include "beeline/hpe/stream.hpp"
#include "hpe/files/transfer.hpp"

namespace beeline::hpe::detail {

/// Holds later work of `stream` until a thread has carried out the transfer, which begins when earlier work has ended.
/// The stream's next `synchronize` throws what fails.
void run_on_gpu_stream(std::shared_ptr<FileTransfer> transfer, Stream& stream);

}  // namespace beeline::hpe::detail
