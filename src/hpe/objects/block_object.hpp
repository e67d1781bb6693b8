// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An object whose blocks move between host and devices.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/fork.hpp"
#include "hpe/objects/block_map.hpp"
#include "hpe/objects/block_size.hpp"
#include "hpe/objects/device_copy.hpp"
#include "hpe/objects/fetch_ahead.hpp"
#include "hpe/objects/futex_lock.hpp"
#include "hpe/objects/holding_threads.hpp"
#include "hpe/objects/kernel_uses.hpp"
#include "hpe/objects/object_state.hpp"
#include "hpe/objects/repeated_faults.hpp"
#include "hpe/owners.hpp"

namespace beeline::hpe::detail {

/// A thread's access to a block that is not current on the host.
struct HostFault {
  std::size_t offset;  ///< of the access, in bytes from the object's start
  bool is_write;
  pid_t thread;                      ///< by `gettid`
  std::int64_t seen_ns = INT64_MAX;  ///< by `now_ns`, before it was noticed; by default the thread surely waits
};

/// What became of a thread's access to an object.
enum class FaultResult {
  resolved,  ///< the access can be repeated
  waiting,   ///< kernels use the object; try again
  foreign,   ///< the program may not access this memory
  failed     ///< the block cannot be made current; the error was logged
};

class BlockObject final : public ObjectState, public CopyingOwner {
 public:
  BlockObject(std::size_t bytes, const ObjectOptions& options, Device home);

  std::byte* data() const override { return memory_->program(); }
  std::size_t bytes() const override { return bytes_; }
  Device home() const override { return home_; }
  std::byte* address_on(Device device) override;
  ObjectStatistics statistics() const override;
  void acquire(Stream& stream) override { acquire(stream.state(), {0, memory_->bytes()}, kernels_write()); }
  void release(Stream& stream) override { release(stream.state()); }
  void begin_access(Range range, Access access) override;
  void end_access() noexcept override;
  void close() override;

  void copy_out(void* to, const std::byte* from, std::size_t bytes, StreamState& stream) override;
  void copy_in(std::byte* to, const void* from, std::size_t bytes, StreamState& stream) override;
  std::byte* address_for(const std::byte* byte, const StreamState& stream) override;
  void put_work(const std::byte* start, std::size_t bytes, bool writes, StreamState& stream,
                const std::function<void()>& put) override;

  void acquire(StreamState& stream, Range range, bool writes);
  void release(StreamState& stream);

  /// As `resolve`, but makes no call that a signal handler must not make. Returns false, and does nothing, if it takes
  /// such a call, or if it would fail.
  [[nodiscard]] bool open_if_current(const HostFault& fault) noexcept;
  /// Makes the block of an access current and opens it. Does not wait for kernels.
  [[nodiscard]] FaultResult resolve(const HostFault& fault) noexcept;
  /// Ends the waits of threads in a fault at `offset`, after `resolve` has failed, or with `why` after a time-out.
  void refuse(std::size_t offset, const char* why) noexcept;
  /// Whether `resolve` makes no call that a signal handler must not make.
  [[nodiscard]] bool resolves_in_handlers() const { return resolves_in_handlers_.load(std::memory_order_acquire); }
  /// Whether this process was forked after the object was made.
  [[nodiscard]] bool is_inherited() const { return is_inherited_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t deadline_ns() const { return deadline_ns_; }
  /// A fault handler that may have found the object holds a pin.
  void pin() noexcept { pins_.fetch_add(1, std::memory_order_seq_cst); }
  void unpin() noexcept { pins_.fetch_sub(1, std::memory_order_release); }
  /// After a fault inside `resolve`, which never ends: the object is unusable, its lock free, and the fault's pin gone.
  void abandon() noexcept;

 private:
  class Held;
  struct Piece {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };

  [[nodiscard]] bool kernels_write() const { return hint_ != Hint::read_mostly && hint_ != Hint::streaming; }
  /// An address inside an object.
  struct Part {
    BlockObject* object;
    const void* address;
  };
  static void copy_between(const Part& to, const Part& from, std::size_t bytes, StreamState& stream);
  [[nodiscard]] std::size_t offset_of(const void* address) const;
  [[nodiscard]] unsigned copy_on(Device device);
  void require_usable() const;
  [[nodiscard]] const char* awaited_by(const StreamState& stream, bool writes);
  void order_after_others(KernelUse& own, bool writes);
  void hand_over(Blocks blocks, bool writes, unsigned copy, StreamState& stream, KernelUse& use);
  void close_view(Blocks blocks, bool writes);
  void mark_written(unsigned copy);
  void unmark_written();
  void send(Blocks blocks, unsigned copy, StreamState& stream, KernelUse& use);
  [[nodiscard]] std::vector<Piece> pieces_for(Blocks blocks, unsigned copy);
  [[nodiscard]] bool passes_host(std::size_t block, unsigned copy) const;
  void fetch_for(Blocks blocks, unsigned copy);
  [[nodiscard]] const std::byte* source_of(std::size_t block) const;
  void fetch_expected();
  void fetch(Blocks blocks);
  [[nodiscard]] std::uint32_t start_fetches(Blocks blocks);
  void finish_fetches(std::uint32_t copies);
  void make_current(const SteppedBlocks& blocks, const HostFault& fault);
  void make_current_ahead(const HostFault& fault);
  void open(Blocks blocks, bool is_write, std::size_t awaited);
  [[nodiscard]] const char* own_access() const;
  void begin_child() noexcept;
  [[nodiscard]] Range range_of(Blocks blocks) const {
    return {blocks.first * block_bytes_, (blocks.end - blocks.first) * block_bytes_};
  }
  [[nodiscard]] Blocks blocks_of(Range range) const {
    return {range.offset / block_bytes_, (range.end() + block_bytes_ - 1) / block_bytes_};
  }

  const std::size_t bytes_;  ///< as the program has asked
  const std::size_t block_bytes_;
  const Device home_;
  const Hint hint_;
  const std::int64_t deadline_ns_;
  std::byte* const given_memory_;  ///< of the home device's copy, or nullptr
  std::optional<ReservedMappings> mappings_;
  std::optional<GpuPlace> place_;
  std::optional<ShadowMemory> memory_;
  std::unique_ptr<HostView> view_;
  Protocol protocol_ = Protocol::protection;

  // Guarded by `lock_`.
  FutexLock lock_;
  BlockMap blocks_;
  std::vector<std::unique_ptr<DeviceCopy>> copies_;
  KernelUses uses_;
  FetchAhead ahead_;
  RepeatedFaults repeated_;
  std::vector<Range> written_;
  HoldingThreads accessors_;  ///< of open `HostAccess`es
  bool is_closed_ = false;

  std::atomic<bool> is_abandoned_{false}, is_inherited_{false}, resolves_in_handlers_{true};
  std::atomic<std::uint32_t> pins_{0};
  std::atomic<std::uint64_t> faults_{0}, fetched_bytes_{0}, sent_bytes_{0};
  std::unique_ptr<beeline::detail::ForkHandler> fork_handler_;
};

}  // namespace beeline::hpe::detail
