// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Moves the blocks of a transfer between a file and memory, several at a time.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/fork.hpp"
#include "hpe/files/block_io.hpp"
#include "hpe/files/block_plan.hpp"
#include "hpe/files/open_file.hpp"
#include "hpe/files/staged_copies.hpp"

namespace beeline::hpe::detail {

/// What a transfer uses.
struct MoverParts {
  OpenFile& file;
  BlockIo& io;
  StagedCopies& copies;
  std::byte* memory;         ///< of the caller; the first byte of the range
  std::byte* buffers;        ///< [slots, buffer_bytes]
  std::size_t buffer_bytes;  ///< at least the plan's largest block
  unsigned slots;            ///< blocks in progress
  unsigned calls;            ///< calls past the page cache in flight; at most `slots`
  unsigned cached_calls;     ///< calls through it, which take the time of a core each; at most `slots`
  bool in_place;             ///< blocks that are aligned, or go through the cache, need no buffer
  bool in_turn = false;      ///< block i goes through slot i modulo `slots`, as the copies expect
};

/// A block goes through a slot. Of a read: a call of the file system, then a copy; of a write: a copy, then a call.
class BlockMover {
 public:
  /// Blocks beyond those of the file system's calls, so that calls and copies overlap. More would not help, and would
  /// need further buffers, which might not fit into the CPU's caches.
  static constexpr unsigned copied_beside = 2;
  /// Shorter transfers are over before other threads have woken up to copy parts of them from or to the page cache.
  static constexpr std::size_t least_bytes_aside = std::size_t{2} << 20;

  BlockMover(const MoverParts& parts, const BlockPlan& plan, const FileOptions& options);
  /// Moves all blocks. Throws as `read_file` says; then no copy and no call uses memory, or `is_stuck`.
  void run();
  /// Whether calls or copies could not be ended: the parts must stay for ever.
  [[nodiscard]] bool is_stuck() const { return is_stuck_; }

 private:
  enum class Stage { idle, waits_for_call, in_call, waits_for_copy, in_copy };
  struct Slot {
    Stage stage = Stage::idle;
    FileBlock block;
    std::size_t moved = 0;  ///< bytes that calls have moved
    bool is_staged = false;
    bool is_direct = false;  ///< the present call goes past the cache
  };

  void start_blocks();
  [[nodiscard]] Slot next_slot() const;
  void begin(unsigned index, const Slot& next);
  [[nodiscard]] bool may_call(const Slot& slot) const;
  /// Whether few enough blocks are in progress: the CPU's caches hold few buffers.
  [[nodiscard]] bool may_begin(unsigned index, const Slot& next) const;
  void start_call(unsigned index);
  void start_waiting_calls();
  void start_copies();
  /// Returns whether a copy has ended.
  bool look_at_copies();
  /// Returns whether a call has moved bytes.
  ///   waits  whether nothing else can begin before a result is there
  bool take_results(bool waits);
  /// Returns whether the call has moved bytes; otherwise it is made again, which is no progress.
  bool end_call(const BlockResult& result);
  [[noreturn]] void fail_empty_call(std::uint64_t offset) const;
  void end_copy(unsigned index);
  void end_block(unsigned index);
  void sync();
  [[nodiscard]] std::int64_t longest_wait_ns() const;
  /// Results before which nothing can begin: of all calls in flight once they are the last, otherwise of one.
  [[nodiscard]] unsigned wanted_results() const;
  void note_progress();
  /// Calls the caller's function. Throws unavailable in a process that was forked by it.
  void report_progress() const;
  void check_limits(const char* what);
  /// Ends calls and copies, unless they are the parent's, who goes on with them and with the file.
  void settle() noexcept;
  [[nodiscard]] bool is_inherited() const { return fork_depth_ != beeline::detail::fork_depth(); }
  [[nodiscard]] bool reads() const { return parts_.file.direction() == FileDirection::reads; }
  [[nodiscard]] std::byte* buffer(unsigned index) const { return parts_.buffers + index * parts_.buffer_bytes; }
  [[nodiscard]] std::byte* memory_of_call(unsigned index) const;

  using Clock = std::chrono::steady_clock;
  const MoverParts parts_;
  const BlockPlan plan_;
  const FileOptions& options_;
  const std::chrono::nanoseconds deadline_;
  const std::uint32_t fork_depth_ = beeline::detail::fork_depth();
  std::vector<Slot> slots_;
  std::size_t next_block_ = 0, moved_ = 0;
  unsigned in_call_ = 0, in_copy_ = 0;
  bool is_stuck_ = false;
  Clock::time_point last_progress_, last_report_, last_line_;
};

}  // namespace beeline::hpe::detail
