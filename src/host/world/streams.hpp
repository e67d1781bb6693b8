// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The streams of a rank.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "beeline/device/context.hpp"
#include "beeline/transport/stream.hpp"
#include "host/blocking_streams.hpp"
#include "host/world/grids.hpp"
#include "host/world/membership.hpp"
#include "host/world/routes.hpp"
#include "host/world_streams.hpp"
#include "memory/host_buffer.hpp"
#include "transport/bounce_stream.hpp"
#include "transport/gpu_reach.hpp"

namespace beeline {

/// Makes streams, and owns the library's streams: the default stream, the stream of blocking copies, and the streams of
/// other blocking calls. Thread-safe.
class Streams {
 public:
  /// All references outlive this object.
  ///   context        of CPU threads
  ///   is_gpu_memory  whether an address of the range is GPU memory
  ///   by_engine      the stream operations that the engine carries out, and the bytes of a chunk; this class fills in
  ///                  the rest
  Streams(const Membership& membership, const Context& context, Grids& grids, const Routes& routes,
          const std::function<bool(const void*)>& is_gpu_memory, StreamRoutes by_engine);

  [[nodiscard]] Stream& main() const { return *main_; }              ///< the default stream
  [[nodiscard]] Stream* of_copies() const { return copies_.get(); }  ///< of a GPU's blocking copies; nullptr: it ended
  /// Calls `work(stream)` with the stream of blocking copies, which does not end meanwhile; not if it has ended.
  template <class Work>
  void with_copies(const Work& work) {
    const std::lock_guard lock(copies_mutex_);
    if (copies_ != nullptr) work(*copies_);
  }
  [[nodiscard]] WorldStreams& handed() { return handed_; }  ///< streams that the program made or adopted
  [[nodiscard]] BlockingStreams& blocking() { return blocking_; }
  /// Access to GPU memory for a host rank in a world with GPUs; nullptr: CPU threads reach all memory, or this rank has
  /// a GPU.
  [[nodiscard]] const GpuReach* gpu_reach() const { return gpu_reach_.get(); }
  /// Whether this rank's copies may have their source or destination in GPU memory.
  [[nodiscard]] bool reach_gpus() const { return membership_.device().is_gpu() || gpu_reach_ != nullptr; }

  [[nodiscard]] std::unique_ptr<Stream> make(StreamPriority priority = StreamPriority::normal);
  [[nodiscard]] std::unique_ptr<Stream> adopt(void* native);
  /// Makes a stream whose waits, on a host rank, have the deadline and abort words of `context`. `context` outlives it.
  [[nodiscard]] std::unique_ptr<Stream> make_waiting(const Context& context);
  /// The buffer of a stream for work by the engine: fills, copies between two ranks on other nodes (carried_work.cpp),
  /// and, on a host rank, copies between GPU memory and other nodes (bounce_stream.hpp). It lives as long as the world,
  /// since the engine may use it after the stream is destroyed.
  [[nodiscard]] std::span<std::byte> carry_buffer(const Stream& whose);
  /// At the world's end, ends the streams that the program still holds; also ends the default stream's waits, if the
  /// world has failed.
  void end_handed(bool has_failed);
  /// Ends the library's own streams.
  void end();

 private:
  [[nodiscard]] std::unique_ptr<Stream> routed(std::unique_ptr<Stream> own);

  const Membership& membership_;
  const Context& context_;
  Grids& grids_;
  const Routes& routes_;
  StreamRoutes stream_routes_;
  std::mutex carry_mutex_;
  std::map<const Stream*, HostBuffer> carry_buffers_;  ///< guarded by carry_mutex_
  std::unique_ptr<GpuReach> gpu_reach_;
  WorldStreams handed_;
  BlockingStreams blocking_;
  std::mutex copies_mutex_;  ///< held while `copies_` ends, and by threads of the library that may use it then
  std::unique_ptr<Stream> copies_, main_;
};

}  // namespace beeline
