// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA graphs of what functions put on a stream.

#include <functional>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

class CapturedGraph {
 public:
  /// Captures what `calls` puts on `stream`, which outlives this. Throws unavailable, with the reason, on a host rank
  /// and where something cannot be captured.
  CapturedGraph(Stream& stream, const std::function<void()>& calls);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  /// On the stream that it was captured from. Asynchronous.
  void launch();

 private:
  Stream& stream_;
  void* executable_ = nullptr;
};

/// A kernel of one thread that does nothing: what a call in a graph costs at the least. On a GPU's stream.
void launch_empty_kernel(Stream& stream);

}  // namespace beeline::bench
