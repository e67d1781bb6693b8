// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Commands that a rank's device carries out for the network, one after the other, without blocking.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "control/command_worker.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// Used by one thread. Commands end in the order in which they began.
class DeviceLane {
 public:
  /// Called when a command is complete.
  ///   result  the old value of the word that the command has changed
  ///   bytes   those given to `begin`
  using End = std::function<void(std::uint64_t result, StagedBytes bytes)>;

  /// Keeps a reference to `client`. On a GPU, loads kernels and warms a stream.
  explicit DeviceLane(const EngineClient& client) : worker_(make_worker(client)) {}
  /// Waits for up to a second for commands in flight, whose buffers are freed here.
  ~DeviceLane();

  /// Whether there is room for this number of commands; 2: for a command and its signal.
  [[nodiscard]] bool has_room(std::size_t commands = 2) const { return count_ + commands <= command_batch; }
  [[nodiscard]] bool is_idle() const { return count_ == 0; }
  /// Begins a command on a word, for which there must be room.
  ///   remote  see CommandWorker::begin
  /// Returns nullptr, or why the command is refused; nothing was touched then.
  [[nodiscard]] const char* begin(const Command& command, std::byte* remote, End end);
  /// As `begin`, to copy rows.
  ///   bytes  buffer that the copy reads or writes; kept until it ends
  [[nodiscard]] const char* begin(const RowMove& rows, StagedBytes bytes, End end);
  /// Calls `End` of the commands that are complete. Returns whether any was in flight.
  bool turn();

 private:
  struct Begun {
    StagedBytes bytes;
    End end;
  };
  /// Keeps a command that `begin(worker)` has begun, unless it was refused.
  template <class Begin>
  [[nodiscard]] const char* add(StagedBytes bytes, End end, const Begin& begin);

  std::unique_ptr<CommandWorker> worker_;
  std::array<Begun, command_batch> begun_{};
  std::size_t count_ = 0, submitted_ = 0;  ///< commands begun; of these, submitted ones
  std::uint64_t submission_ = 0;           ///< number of the last one: its end is a word that the device stores
};

}  // namespace beeline
