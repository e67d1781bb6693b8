// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One transfer between a file and memory.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

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

class TakenLane;

class FileTransfer {
 public:
  /// Checks everything, and opens the file.
  FileTransfer(const std::filesystem::path& path, FileDirection direction, std::byte* memory, std::size_t bytes,
               const FileOptions& options);
  ~FileTransfer();
  FileTransfer(const FileTransfer&) = delete;
  FileTransfer& operator=(const FileTransfer&) = delete;
  /// Makes the buffers and the stream that `run` would make otherwise (`automatic`). While a GPU's stream waits for the
  /// transfer, CUDA might not make them before that wait ends.
  void prepare();
  /// Moves the bytes. Called once.
  void run();

 private:
  struct Automatic;
  [[nodiscard]] Automatic automatic() const;
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
