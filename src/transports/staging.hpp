// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the network reads and writes memory of a rank whose device has to copy it: through buffers, without blocking.
/// Outgoing and incoming data have their own lane and buffers, so that neither delays the other.

#include <cstdint>
#include <functional>

#include "control/mapped_memory.hpp"
#include "transports/device_lane.hpp"
#include "transports/rows.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// Used by one thread.
class Staging {
 public:
  /// Called with the bytes that have been read: the first `count` of the buffer.
  using Read = std::function<void(StagedBytes bytes, std::size_t count)>;
  using Changed = std::function<void(std::uint64_t held)>;

  /// Keeps a reference to `client`. Throws no_resource.
  explicit Staging(const EngineClient& client)
      : client_(client), memory_(client), out_buffers_(client.device.is_gpu()), in_buffers_(client.device.is_gpu()),
        out_(client), in_(client) {}

  /// Whether the CPU may read the rows itself: host memory that all ranks of the node have mapped.
  [[nodiscard]] bool is_for_cpu(const Rows& rows) {
    return client_.device.is_gpu() && memory_.holds_in_host_memory(rows.first, rows.extent());
  }
  /// Whether the CPU may read or change the rows now: no earlier change is in flight.
  [[nodiscard]] bool is_for_cpu_now(const Rows& rows) { return in_.is_idle() && is_for_cpu(rows); }
  /// Whether the CPU may change the rows by this command now. Atomics are done where the rank's engine does them:
  /// kernels of this node may do atomics on the same word.
  [[nodiscard]] bool is_for_cpu_now(const Command& command, const Rows& rows) {
    return (client_.cpu_changes_host_words || !has_shape<VerbShape::atomic>(command.verb)) && is_for_cpu_now(rows);
  }

  /// Whether all changes of this rank's memory by the device are over.
  [[nodiscard]] bool has_settled() const { return in_.is_idle(); }

  // Each of these functions returns nullptr, and calls `end` later; or it does nothing, and returns why it is refused.
  // At most `staging_bytes` are read or written at a time. `is_known`: the rows are known to be memory that this rank's
  // device reads and writes, so that this need not be queried.

  /// Whether a source may be read.
  [[nodiscard]] bool may_read() const { return out_.has_room() && out_buffers_.any(); }
  [[nodiscard]] const char* read(const Rows& rows, bool is_known, Read end) {
    return read(out_, rows, is_known, std::move(end));
  }

  /// Whether this number of commands may begin, if their bytes are already in a buffer.
  [[nodiscard]] bool has_room(std::size_t commands) const { return in_.has_room(commands); }
  /// Whether one of the following changes may begin, with this number of commands. Changes take effect in their order.
  [[nodiscard]] bool may_change(std::size_t commands) const { return in_.has_room(commands) && in_buffers_.any(); }
  [[nodiscard]] StagedBytes take() { return in_buffers_.take(); }
  /// Whether a message other than the next may take a buffer: half of the buffers are kept for the next message.
  [[nodiscard]] bool may_take_ahead() const { return in_buffers_.free() > StagingBuffers::count / 2; }
  ///   bytes  the rows, contiguous
  [[nodiscard]] const char* write(const Rows& rows, bool is_known, StagedBytes bytes, Changed end);
  [[nodiscard]] const char* change(const Command& command, std::byte* at, Changed end);
  [[nodiscard]] const char* read_in_order(const Rows& rows, bool is_known, Read end) {
    return read(in_, rows, is_known, std::move(end));
  }

  /// Calls `end` for operations that are complete. Returns whether any was in flight.
  bool turn() {
    const bool any = out_.turn();
    return in_.turn() || any;
  }

 private:
  [[nodiscard]] const char* read(DeviceLane& lane, const Rows& rows, bool is_known, Read end);

  const EngineClient& client_;
  MappedMemory memory_;
  StagingBuffers out_buffers_, in_buffers_;
  DeviceLane out_, in_;
};

}  // namespace beeline
