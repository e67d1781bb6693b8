// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a transfer borrows: calls of the file system, buffers, streams. Making them takes milliseconds.

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"
#include "hpe/files/block_io.hpp"
#include "memory/host_buffer.hpp"

namespace beeline::hpe::detail {

/// Pinned buffers that no transfer uses any more. CUDA frees such memory once the work of the GPUs' streams has ended.
/// A call that puts a transfer on a stream would wait for earlier transfers, so nothing is freed while a stream may
/// wait for one.
class UnusedBuffers {
 public:
  /// Frees the buffers, now or when no stream waits.
  static void add(std::shared_ptr<void> buffers);
  /// While one exists, a stream of a GPU may wait for a transfer.
  class Kept {
   public:
    Kept();
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
  };
};

/// Used by one transfer at a time.
class FileLane {
 public:
  ~FileLane() { leave_pinned(); }
  static constexpr unsigned most_calls = 32;  ///< in flight

  explicit FileLane(std::unique_ptr<BlockIo> io) : io_(std::move(io)) {}
  FileLane(const FileLane&) = delete;
  FileLane& operator=(const FileLane&) = delete;
  [[nodiscard]] BlockIo& io() { return *io_; }
  /// By threads of this process, all of which begin at once. Of calls on the page cache that are submitted together,
  /// io_uring carries out one after the other: it wakes its first idle thread for each (io_wq_enqueue, Linux 6.18).
  [[nodiscard]] BlockIo& io_by_threads();
  /// Memory aligned to a page, in large pages where the system has them; its content is undefined.
  ///   is_pinned  GPUs use it
  [[nodiscard]] std::byte* buffers(std::size_t bytes, bool is_pinned);
  /// A stream of the device; no other lane uses it.
  [[nodiscard]] Stream& stream(Device device);

 private:
  void leave_pinned();

  const std::unique_ptr<BlockIo> io_;
  std::unique_ptr<BlockIo> io_by_threads_;
  std::optional<HostBuffer> pageable_;
  std::optional<PinnedMemory> pinned_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

/// A lane for the time of a transfer.
class TakenLane {
 public:
  /// One that is kept for reuse.
  TakenLane();
  /// One of the caller's, which is not kept.
  explicit TakenLane(std::unique_ptr<FileLane> own) : lane_(std::move(own)), is_kept_(false) {}
  ~TakenLane();
  TakenLane(const TakenLane&) = delete;
  TakenLane& operator=(const TakenLane&) = delete;
  /// Frees idle lanes beyond those that are kept for reuse. CUDA may wait for work of streams meanwhile.
  static void free_surplus();
  [[nodiscard]] FileLane& get() const { return *lane_; }
  /// Its calls or copies have not ended: it is used no more, and stays for ever.
  void leave() { static_cast<void>(lane_.release()); }

 private:
  std::unique_ptr<FileLane> lane_;
  const bool is_kept_;
};

}  // namespace beeline::hpe::detail
