// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the network reads and writes memory of a rank whose device has to copy it: by way of buffers, without anybody
/// waiting. What goes out and what comes in have a lane and buffers each, so that neither holds up the other.

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
  /// What has been read: `count` bytes of them.
  using Read = std::function<void(StagedBytes bytes, std::size_t count)>;
  using Changed = std::function<void(std::uint64_t held)>;

  /// The client stays where it is. Throws no_resource.
  explicit Staging(const EngineClient& client)
      : client_(client), memory_(client), out_buffers_(client.device.is_gpu()), in_buffers_(client.device.is_gpu()),
        out_(client), in_(client) {}

  /// Whether the CPU reads them at once: host memory that all ranks of the node have mapped.
  [[nodiscard]] bool is_for_cpu(const Rows& rows) {
    return client_.device.is_gpu() && memory_.holds_in_host_memory(rows.first, rows.extent());
  }
  /// Whether the CPU reads or changes them at once: nothing that came before is under way.
  [[nodiscard]] bool is_for_cpu_now(const Rows& rows) { return in_.is_idle() && is_for_cpu(rows); }

  /// Whether the device does nothing that changes this rank's memory.
  [[nodiscard]] bool has_settled() const { return in_.is_idle(); }

  // Each of these returns why it is refused, and does nothing then; nullptr: it is not, and `end` is called. At most
  // `staging_bytes` are read or written at a time.

  /// Whether a source may be read.
  [[nodiscard]] bool may_read() const { return out_.has_room() && out_buffers_.any(); }
  [[nodiscard]] const char* read(const Rows& rows, Read end) {
    return read(out_, rows, out_buffers_.take(), std::move(end));
  }

  /// Whether a change may begin whose bytes have been taken.
  [[nodiscard]] bool has_room() const { return in_.has_room(); }
  /// Whether one of the following may begin. They take effect in their order.
  [[nodiscard]] bool may_change() const { return in_.has_room() && in_buffers_.any(); }
  [[nodiscard]] StagedBytes take() { return in_buffers_.take(); }
  /// Whether a buffer may be taken for what is not next: half of them are left to what is, which then gets on.
  [[nodiscard]] bool may_take_ahead() const { return in_buffers_.free() > StagingBuffers::count / 2; }
  ///   bytes  one behind the other
  [[nodiscard]] const char* write(const Rows& rows, StagedBytes bytes, Changed end);
  [[nodiscard]] const char* change(const Command& command, std::byte* at, Changed end);
  [[nodiscard]] const char* read_in_order(const Rows& rows, Read end) {
    return read(in_, rows, out_buffers_.take(), std::move(end));  // it goes out
  }

  /// Tells of what is over. Whether anything was under way.
  bool turn() {
    const bool any = out_.turn();
    return in_.turn() || any;
  }

 private:
  [[nodiscard]] static const char* read(DeviceLane& lane, const Rows& rows, StagedBytes bytes, Read end);

  const EngineClient& client_;
  MappedMemory memory_;
  StagingBuffers out_buffers_, in_buffers_;
  DeviceLane out_, in_;
};

}  // namespace beeline
