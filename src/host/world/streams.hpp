// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The streams of a rank.

#include <functional>
#include <map>
#include <memory>
#include <mutex>

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

/// Makes streams, and has those of the library: the default one, that of blocking copies, those of other blocking
/// calls. Any thread may use it.
class Streams {
 public:
  /// All references outlive it.
  ///   context        of CPU threads
  ///   is_gpu_memory  whether an address of the range is
  ///   by_engine      what streams do by the engine, and the bytes of a chunk; the rest is filled in here
  Streams(const Membership& membership, const Context& context, Grids& grids, const Routes& routes,
          const std::function<bool(const void*)>& is_gpu_memory, StreamRoutes by_engine);

  [[nodiscard]] Stream& main() const { return *main_; }              ///< the default stream
  [[nodiscard]] Stream* of_copies() const { return copies_.get(); }  ///< of blocking copies by a GPU; nullptr: it ended
  [[nodiscard]] WorldStreams& handed() { return handed_; }           ///< what the program has made or adopted
  [[nodiscard]] BlockingStreams& blocking() { return blocking_; }
  /// Of a host rank in a world with GPUs; nullptr: CPU threads reach all memory, or this rank has a GPU.
  [[nodiscard]] const GpuReach* gpu_reach() const { return gpu_reach_.get(); }
  /// Whether this rank's copies may have an end in GPU memory.
  [[nodiscard]] bool reach_gpus() const { return membership_.device().is_gpu() || gpu_reach_ != nullptr; }

  [[nodiscard]] std::unique_ptr<Stream> make(StreamPriority priority = StreamPriority::normal);
  [[nodiscard]] std::unique_ptr<Stream> adopt(void* native);
  /// One whose waits on a host rank have the deadline and the abort words of `context`, which outlives it.
  [[nodiscard]] std::unique_ptr<Stream> make_waiting(const Context& context);
  /// The buffer that work of a stream goes through, one piece after the other (carried_work.cpp). It lives as long as
  /// the world: the engine may use it longer than the stream lives.
  [[nodiscard]] std::byte* carry_buffer(const Stream& whose, std::size_t bytes);
  /// Ends the streams that the program still has, at the world's end; also the default stream's waits, if the world has
  /// failed.
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
  std::unique_ptr<Stream> copies_, main_;
};

}  // namespace beeline
