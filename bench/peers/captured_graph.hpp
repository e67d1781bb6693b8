// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// CUDA graphs captured from a stream.

#include <functional>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

class CapturedGraph {
 public:
  /// Captures the work that `calls` enqueues on `stream`, which must outlive this object. Throws unavailable, with the
  /// reason, on a host rank and if the work cannot be captured.
  CapturedGraph(Stream& stream, const std::function<void()>& calls);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  /// Launches the graph on the stream from which it was captured. Asynchronous.
  void launch();

 private:
  Stream& stream_;
  void* executable_ = nullptr;
};

/// Launches a kernel of one thread that does nothing: the minimum cost of a call in a graph. For a GPU's stream.
void launch_empty_kernel(Stream& stream);

}  // namespace beeline::bench
