// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One transfer between a file and memory.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "beeline/hpe/files.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/files/block_mover.hpp"
#include "hpe/files/open_file.hpp"

namespace beeline::hpe::detail {

/// Where the caller's memory is.
struct FileMemory {
  std::byte* address = nullptr;
  Owner owner;
  /// Calls of the file system reach it: host memory that is no object's.
  [[nodiscard]] bool is_of_host() const;
};
/// Throws invalid_argument for memory of nobody, and for memory with fewer than `bytes` from `address` on; unavailable
/// for memory of a device that does not work.
[[nodiscard]] FileMemory checked_memory(std::byte* address, std::size_t bytes);

class FileLane;
class TakenLane;

/// How a transfer of the variant `automatic` proceeds.
struct Proceeding {
  BlockPlan plan;
  unsigned slots, calls, cached_calls;  ///< as in `MoverParts`
  std::size_t buffer_bytes;
  bool in_place;
};

class FileTransfer {
 public:
  /// Checks everything, and opens the file.
  FileTransfer(const std::filesystem::path& path, FileDirection direction, std::byte* memory, std::size_t bytes,
               const FileOptions& options);
  ~FileTransfer();
  FileTransfer(const FileTransfer&) = delete;
  FileTransfer& operator=(const FileTransfer&) = delete;
  /// Moves the bytes. Called once.
  void run();
  /// Whether calls of the file system reach the memory, so that `run` uses no device; or there is nothing to move.
  [[nodiscard]] bool has_no_copies() const { return file_.range().bytes == 0 || memory_.is_of_host(); }
  /// Whether the bytes are in memory of a GPU, which is no object's.
  [[nodiscard]] bool is_on_gpu() const {
    return memory_.owner.device.is_gpu() &&
           (memory_.owner.memory == Memory::device || memory_.owner.memory == Memory::managed);
  }
  [[nodiscard]] Device device() const { return memory_.owner.device; }
  /// How `run_in_turn` moves the bytes: in few blocks, for each of which a stream holds several operations.
  [[nodiscard]] Proceeding in_turn() const;
  /// As `run`, through the given buffers and in the order of blocks, by copies that were prepared for that.
  ///   leave  called if calls cannot be ended: keeps the lane for ever
  void run_in_turn(const Proceeding& how, FileLane& lane, StagedCopies& copies, const std::function<void()>& leave);
  [[nodiscard]] std::byte* memory() const { return memory_.address; }
  [[nodiscard]] FileDirection direction() const { return file_.direction(); }
  [[nodiscard]] std::string text() const { return file_.text(); }

 private:
  /// The block size where the caller has chosen none.
  [[nodiscard]] std::size_t usual_block_bytes(unsigned cached_calls) const;
  ///   least_block_bytes  of blocks, if the caller has not chosen longer ones
  [[nodiscard]] Proceeding automatic(std::size_t least_block_bytes) const;
  /// Whether threads of the process read what the page cache holds.
  [[nodiscard]] bool is_read_by_cores(unsigned cached_calls) const;
  [[nodiscard]] MoverParts parts_of(const Proceeding& how, FileLane& lane, StagedCopies& copies);
  [[nodiscard]] TakenLane& taken_lane();
  void run_automatic();
  [[nodiscard]] bool may_use_gds() const;
  void run_by_gds(std::unique_ptr<BlockIo> io, unsigned calls);
  void run_by_hand();
  /// Runs a mover. If calls or copies cannot be ended, calls `leave`, which has to keep what they use for ever.
  void move(const MoverParts& parts, const BlockPlan& plan, const std::function<void()>& leave);

  const FileOptions options_;
  const FileMemory memory_;
  OpenFile file_;
  std::unique_ptr<TakenLane> lane_;
};

}  // namespace beeline::hpe::detail
