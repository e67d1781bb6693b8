// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Commands that a rank's device does for the network, one after the other, without anybody waiting for them.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "control/command_worker.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// Used by one thread. What it has begun ends in its order.
class DeviceLane {
 public:
  /// Called when a command is over.
  ///   result  what the word held that it has changed
  ///   bytes   those that it was given
  using End = std::function<void(std::uint64_t result, StagedBytes bytes)>;

  /// The client stays where it is. Loads kernels, and warms a stream, of a GPU.
  explicit DeviceLane(const EngineClient& client) : worker_(make_worker(client)) {}
  /// Waits a moment for what is under way, whose buffers go now.
  ~DeviceLane();

  /// For a command, and for the signal behind it.
  [[nodiscard]] bool has_room() const { return count_ + 1 < command_batch; }
  [[nodiscard]] bool is_idle() const { return count_ == 0; }
  /// Begins a command, for which there is room.
  ///   remote  see CommandWorker::begin
  ///   bytes   what it copies to or from; kept until it is over
  /// Returns why it is refused, and nothing was touched; nullptr: it is not.
  [[nodiscard]] const char* begin(const Command& command, std::byte* remote, StagedBytes bytes, End end);
  /// Tells of what is over. Whether anything was under way.
  bool turn();

 private:
  struct Begun {
    Command command{};
    StagedBytes bytes;
    End end;
  };
  std::unique_ptr<CommandWorker> worker_;
  std::array<Begun, command_batch> begun_{};
  std::size_t count_ = 0, submitted_ = 0;  ///< of what has begun
};

}  // namespace beeline
