// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls that a CPU thread of a GPU rank carries out in the order of its streams. Data for other nodes pass through
/// host memory, and no multiprocessor waits for them.
///
///     stream                                        the lane's thread
///     copies the source out
///     writes `begun`                            ->  waits for it, calls with copies in host memory
///     waits for `done`                          <-  stores `done`
///     copies the destination in, writes `ended`

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "beeline/core/layout.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "memory/host_buffer.hpp"

namespace beeline::detail {

/// Vectors of a call, in memory of the rank's device.
struct LaneVectors {
  void* destination = nullptr;
  std::size_t destination_bytes = 0;
  const void* source = nullptr;
  std::size_t source_bytes = 0;
  bool has_gaps = false;  ///< the call leaves parts of the destination unchanged
};

/// A thread that carries out calls one after the other. Used by one thread of the program at a time.
class CpuLane {
 public:
  /// The thread's work, with copies of the vectors in host memory.
  using Call = std::function<void(const Context& ctx, std::byte* destination, const std::byte* source)>;

  explicit CpuLane(Team& team);
  ~CpuLane();

  /// Puts a call on a stream of the rank. Throws unavailable while the stream is captured, no_resource.
  void call(Stream& stream, const LaneVectors& vectors, Call work);
  /// Throws as `call`, while the stream is captured.
  static void require_no_capture(Stream& stream);

 private:
  static constexpr std::size_t most_calls = 64;  ///< calls in flight
  struct Words {
    PaddedWord begun, done, ended;
  };
  struct Scratch {
    std::unique_ptr<HostBuffer> memory;
    std::uint64_t user = 0;  ///< number of the call that uses the memory
  };
  [[nodiscard]] Words& words(std::uint64_t number) const;
  [[nodiscard]] bool has_ended(std::uint64_t number) const;
  [[nodiscard]] std::byte* scratch_for(std::uint64_t number, std::size_t bytes);
  /// Waits until the stream has reached a call; false at the deadline.
  [[nodiscard]] bool await_stream(std::uint64_t number) const;

  Team& team_;
  HostBuffer words_;
  std::vector<Scratch> scratch_;
  std::uint64_t calls_ = 0;
  std::unique_ptr<Stream> thread_;
};

/// A lane's thread as a grid of one thread.
struct LoneThread {
  [[nodiscard]] std::uint32_t thread_rank() const { return 0; }
};

/// A lane for each stream: calls of different streams do not wait for each other.
class CpuLanes {
 public:
  explicit CpuLanes(Team& team) : team_(team) {}
  [[nodiscard]] CpuLane& of(const Stream& stream) {
    std::unique_ptr<CpuLane>& lane = lanes_[stream.native()];
    if (lane == nullptr) lane = std::make_unique<CpuLane>(team_);
    return *lane;
  }

 private:
  Team& team_;
  std::map<const void*, std::unique_ptr<CpuLane>> lanes_;
};

}  // namespace beeline::detail
