// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A copy that a kernel starts by launching a CUDA graph. It has its own library, because it needs relocatable device
/// code.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace beeline::bench {

/// A device graph of two copies: the bytes, then a word that notifies the kernel that launched the graph. No other
/// kernel and no CPU thread takes part.
class GraphCopy {
 public:
  virtual ~GraphCopy() = default;
  /// Launches the kernel, and returns the nanoseconds of the copy by the kernel's clock: from the launch of the graph
  /// until the word has arrived. Throws deadline, internal.
  [[nodiscard]] virtual double run() = 0;
};

/// Makes a `GraphCopy` for the current GPU of this thread.
///   destination, source  [bytes] GPU memory that this GPU reaches
///   words                [4] of this GPU's memory
///   deadline_ns          limit of the kernel's wait
/// Throws unavailable if the program was built without CUDA, or CUDA does not make such a graph of these copies.
[[nodiscard]] std::unique_ptr<GraphCopy> make_graph_copy(std::byte* destination, const std::byte* source,
                                                         std::uint64_t bytes, std::uint64_t* words,
                                                         std::uint64_t deadline_ns);

}  // namespace beeline::bench
