// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A copy that a graph's conditional node makes or skips: a possible guard of a waiting stream.

#include <cstddef>
#include <cstdint>

#include "beeline/transport/stream.hpp"

namespace beeline::bench {

class ConditionalCopy {
 public:
  /// Makes a graph that copies by a copy engine unless `forbidden`, a word in host memory, is set when the graph runs.
  /// Throws unavailable on a host rank, and if CUDA has no conditional nodes.
  ConditionalCopy(Stream& stream, void* to, const void* from, std::size_t bytes, const std::uint64_t* forbidden);
  ~ConditionalCopy();
  ConditionalCopy(const ConditionalCopy&) = delete;
  ConditionalCopy& operator=(const ConditionalCopy&) = delete;

  /// Launches the graph on the stream. Asynchronous.
  void launch();

 private:
  Stream& stream_;
  void* executable_ = nullptr;
};

}  // namespace beeline::bench
