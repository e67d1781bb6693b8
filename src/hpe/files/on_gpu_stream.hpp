// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A transfer of a file in the order of a GPU's stream.

#include <functional>
#include <memory>

#include "hpe/files/transfer.hpp"
#include "hpe/stream_state.hpp"

namespace beeline::hpe::detail {

/// Holds later work of `stream` until a thread has carried out the transfer, which begins when earlier work has ended.
/// The thread uses no device; the stream copies.
///   stages  whether the bytes go through buffers; necessary unless `transfer->has_no_copies()`
///   before  a host device's stream for whose work `stream` waits first; nullptr: none
/// Returns what throws the transfer's failure, to be called once the stream has passed the transfer.
[[nodiscard]] std::function<void()> run_on_gpu_stream(std::shared_ptr<FileTransfer> transfer, StreamState& stream,
                                                      bool stages, StreamState* before = nullptr);

}  // namespace beeline::hpe::detail
