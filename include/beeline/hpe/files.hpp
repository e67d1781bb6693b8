// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Transfers between files and memory of any device.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "beeline/hpe/stream.hpp"

namespace beeline::hpe {

/// How bytes move between a file and memory. `automatic` uses buffers only where the file's blocks cannot go to the
/// memory itself. The other variants use them even if the memory is the host's, and read and write through the page
/// cache, one system call after the other. Source: seed 001, figure 11.
enum class FileVariant {
  automatic,       ///< blocks in flight by io_uring, past the page cache where that is faster
  user,            ///< the whole range through a pageable buffer: one read, then one copy
  pinned,          ///< the whole range through a pinned buffer: one read, then one copy
  double_buffered  ///< through two pinned buffers: one is filled while the other one is emptied
};
/// As in options and records: `automatic`, `user`, `pinned`, `double_buffered`.
[[nodiscard]] const char* name(FileVariant variant);

/// Whether transfers of the variant `automatic` use the page cache.
enum class FileAccess {
  automatic,  ///< a block that the cache holds is read from it; writes that need not be durable go to it, up to a
              ///< 64th of the machine's memory; other blocks go past it if the file system allows that
  direct,     ///< past the cache (O_DIRECT); through it if the file system does not allow that, which is logged once
  buffered    ///< through the cache
};

/// The file's range, and how a transfer proceeds.
struct FileOptions {
  std::uint64_t offset = 0;  ///< first byte of the file's range; needs no alignment
  FileVariant variant = FileVariant::automatic;
  FileAccess access = FileAccess::automatic;
  std::size_t block_bytes = 0;  ///< of one system call; 0: 256 KiB to 4 MiB, by the length
  /// Blocks that the file system works on at once; 0: 4, or up to 16 of what the page cache holds.
  unsigned blocks_in_flight = 0;
  bool durable = false;  ///< writes: return when the storage has the data, and the name of a new file
  /// Longest time without progress, more than 0; no value: BEELINE_DEADLINE_S.
  std::optional<std::chrono::nanoseconds> deadline = {};
  /// Called with the bytes moved so far and all bytes, about ten times a second and at the end, by the thread that
  /// moves them. An exception ends the transfer, and is thrown.
  std::function<void(std::size_t moved, std::size_t all)> progress = {};
};

/// Reads `bytes` bytes of a regular file to `to`: memory of a GPU, pinned, managed or pageable memory, or an object.
/// No alignment is needed. Blocking; any thread may call it, also several at a time. Returns `bytes`.
///
/// Throws, before anything is touched: invalid_argument for a file that does not exist, may not be read, is not a
/// regular file, or ends before `offset + bytes`, and for memory that is not mapped or ends before `to + bytes`;
/// unavailable for memory of a device that does not work.
/// Throws later, and leaves parts of the range written: invalid_argument if the file shrinks or the memory is unmapped
/// meanwhile; deadline; aborted if a signal of the program ends the wait; internal for errors of the device. After a
/// deadline the operating system may still write to `to`: the error says so.
/// Source: seed 001, section 5.4.
std::size_t read_file(const std::filesystem::path& path, void* to, std::size_t bytes, const FileOptions& options = {});

/// Writes `bytes` bytes from `from` to a regular file, which is made if it does not exist (mode 0666 less the umask),
/// extended if it is too short, and otherwise kept outside the range. Blocking; memory and threads as for `read_file`.
/// Returns `bytes`; the data are visible to readers of the file, and durable only on request.
///
/// Throws as `read_file`; also no_resource, before anything is touched, if the file system has no room for the range or
/// RLIMIT_FSIZE forbids its length, and later if room ends on a file system that cannot reserve it. A file that grew
/// before a failure is cut to its former length, and one that was made is removed, unless another thread or process has
/// it open, or has written outside the range beyond the former length: so several writers may write parts of one new
/// file that do not overlap. It also stays, which is logged, where the file system has no leases (NFS, FUSE).
std::size_t write_file(const std::filesystem::path& path, const void* from, std::size_t bytes,
                       const FileOptions& options = {});

/// As `read_file`, in the order of `stream`: begins when earlier work has ended, and later work sees the bytes.
/// Asynchronous: `to` must remain until the stream has passed the call. Checks file, memory and sizes during the call;
/// what fails later is thrown by the stream's next `synchronize` or `is_done`. The file is opened by the call, so that
/// it may be renamed or removed afterwards. Throws unavailable while a graph captures the stream, and on a GPU's stream
/// for variants other than `automatic`. On a GPU's stream blocks are longer, at least a 128th of the range up to 64
/// MiB; after a failure parts of `to` may hold any bytes; an object is acquired during the call.
void read_file(const std::filesystem::path& path, void* to, std::size_t bytes, Stream& stream,
               const FileOptions& options = {});
/// As `write_file`, in the order of `stream`; see above. The file is made and its room reserved during the call.
void write_file(const std::filesystem::path& path, const void* from, std::size_t bytes, Stream& stream,
                const FileOptions& options = {});

/// What this machine offers for transfers of files.
struct FileSupport {
  std::string no_uring;  ///< why io_uring is not used, and threads read and write instead; empty if it is
  std::string no_gds;    ///< why files do not go to GPUs directly (GPUDirect Storage); empty if they do
};
[[nodiscard]] FileSupport file_support();

}  // namespace beeline::hpe
