// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A regular file, opened through the page cache and, where the file system allows it, past it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "beeline/hpe/files.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::hpe::detail {

enum class FileDirection { reads, writes };

/// A range of a file.
struct FileRange {
  std::uint64_t offset;
  std::size_t bytes;
  [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
};

class OpenFile {
 public:
  /// Opens the file and checks the range. A file that is written is made, and its room reserved. Throws as `read_file`
  /// and `write_file` say, with nothing touched.
  OpenFile(std::filesystem::path path, FileDirection direction, FileRange range, FileAccess access);
  /// Unless `keep` was called, gives a file that was written its former length, and removes one that was made; unless
  /// others have the file open or have written to it beyond its former length, outside the range.
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// After a successful transfer, and in a child, whose parent goes on with the transfer.
  void keep() { is_kept_ = true; }
  [[nodiscard]] const FileRange& range() const { return range_; }
  [[nodiscard]] FileDirection direction() const { return direction_; }
  /// Whether room for a part of the range was reserved, or for all of it, when the file was opened.
  [[nodiscard]] bool is_in_new_room() const { return is_in_new_room_; }

  /// The descriptor for the page cache. Opened at its first use, since many files need only `direct`.
  [[nodiscard]] int buffered();
  /// The descriptor past the page cache; -1: blocks cannot go past it.
  [[nodiscard]] int direct() const { return is_direct_refused_ ? -1 : direct_.get(); }
  /// Either of them, for calls that do not depend on the cache.
  [[nodiscard]] int any() const { return buffered_ ? buffered_.get() : direct_.get(); }
  /// Alignment of offsets and lengths of blocks past the cache.
  [[nodiscard]] std::size_t offset_alignment() const { return offset_alignment_; }
  /// Alignment of their memory.
  [[nodiscard]] std::size_t memory_alignment() const { return memory_alignment_; }
  /// From now on everything goes through the cache: the file system has refused a block.
  void refuse_direct();
  /// Whether the cache holds all of a part of the file, so that copying it is faster than reading the storage.
  [[nodiscard]] bool is_cached(const FileRange& part) const;
  /// The folder whose fsync makes the name of a new file durable; none for a file that existed.
  [[nodiscard]] FileDescriptor folder_to_sync() const;

  [[nodiscard]] std::uint64_t bytes_now() const;
  /// An error that names what failed, the file and the offset.
  [[noreturn]] void fail(int error_number, std::uint64_t offset) const;
  [[noreturn]] void fail_folder(int error_number) const;
  /// The file's name, for errors.
  [[nodiscard]] std::string text() const;

 private:
  void open_for_reading();
  void open_for_writing();
  void open_direct(FileAccess access);
  void reserve_room();
  [[nodiscard]] bool open_or_make();
  void restore();
  [[nodiscard]] bool has_bytes_of_others() const;
  [[nodiscard]] bool remove_new() const;
  void check_kind(unsigned mode) const;

  const std::filesystem::path path_;
  std::filesystem::path new_path_;  ///< absolute, of a file that this object has made; empty: it was there before
  const FileDirection direction_;
  const FileRange range_;
  FileDescriptor buffered_, direct_;
  std::size_t offset_alignment_ = 4096, memory_alignment_ = 4096;
  bool is_direct_refused_ = false;
  bool asks_cache_ = false;  ///< whether the cache held a part of the range when the file was opened, but not all
  bool is_in_new_room_ = false, is_kept_ = false;
  std::uint64_t former_bytes_ = 0;  ///< of a file that was there before
};

}  // namespace beeline::hpe::detail
