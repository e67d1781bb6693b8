// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <limits>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/same_file.hpp"

namespace beeline::hpe::detail {

namespace {

/// Blocks past the cache, and the bytes beside them that go through it, never share a page of the cache.
constexpr std::size_t cache_page_bytes = 4096;

std::string text_of_error(int number) { return std::generic_category().message(number); }

/// What the caller can change, or what is full, or what is broken.
Status status_of_file_error(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Status::no_resource;
    case EIO:
      return Status::internal;
    default:
      return Status::invalid_argument;
  }
}

/// The alignment that the kernel demands of blocks past the cache, as `statx` of Linux 6.1 reports it. glibc's header
/// may be older than the kernel's.
struct DirectAlignment {
  std::uint32_t memory = 0, offset = 0;  ///< 0: unknown, or not possible
};
DirectAlignment direct_alignment_of(int descriptor) {
  constexpr unsigned wanted = 0x2000;                        // STATX_DIOALIGN
  constexpr std::size_t memory_at = 0x98, offset_at = 0x9c;  // stx_dio_mem_align, stx_dio_offset_align
  alignas(8) unsigned char raw[256] = {};
  if (::syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, wanted, raw) != 0) return {};
  std::uint32_t mask = 0;
  DirectAlignment found;
  __builtin_memcpy(&mask, raw, sizeof mask);
  if ((mask & wanted) == 0) return {};
  __builtin_memcpy(&found.memory, raw + memory_at, sizeof found.memory);
  __builtin_memcpy(&found.offset, raw + offset_at, sizeof found.offset);
  return found;
}

/// Takes a lease of a file. Returns false if another descriptor of the file is open, in any process. Until this one is
/// closed, calls of others that open the file wait, or return EWOULDBLOCK with O_NONBLOCK.
bool take_lease(int descriptor) {
  // The signal to the holder when others wait: programs ignore it unless they ask for it, unlike SIGIO, the default.
  return ::fcntl(descriptor, F_SETSIG, SIGURG) == 0 && ::fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0;
}

/// Opens a file without waiting for the other end of a pipe. Waits for the end of a lease, as `take_lease` gives it.
FileDescriptor opened(const std::filesystem::path& path, int direction) {
  FileDescriptor file(::open(path.c_str(), direction | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == EWOULDBLOCK) file = FileDescriptor(::open(path.c_str(), direction | O_CLOEXEC));
  return file;
}

/// Pages of the cache that a part of a file takes.
std::int64_t pages_of(const FileRange& part) {
  const std::uint64_t end = (part.end() + cache_page_bytes - 1) / cache_page_bytes;
  return static_cast<std::int64_t>(end - part.offset / cache_page_bytes);
}

/// Pages of a part of a file that the cache holds, by `cachestat` of Linux 6.5; -1: the kernel does not say.
std::int64_t cached_pages(int descriptor, const FileRange& part) {
  constexpr long cachestat = 451;
  struct {
    std::uint64_t offset, bytes;
  } asked{part.offset, part.bytes};
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(cachestat, descriptor, &asked, &found, 0) != 0) return -1;
  return static_cast<std::int64_t>(found.cached);
}

}  // namespace

OpenFile::OpenFile(std::filesystem::path path, FileDirection direction, FileRange range, FileAccess access)
    : path_(std::move(path)), direction_(direction), range_(range) {
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (range_.offset > longest || range_.bytes > longest - range_.offset)
    throw Error(Status::invalid_argument,
                fmt::format("{} bytes at offset {} of {}: files end before", range_.bytes, range_.offset, text()));
  if (direction_ == FileDirection::reads)
    open_for_reading();
  else
    open_for_writing();
  open_direct(access);
}

OpenFile::~OpenFile() {
  if (!is_kept_) restore();
}

/// Others may write other parts of the file: a file that they have open, or have written to, stays as it is.
void OpenFile::restore() {
  if (direction_ == FileDirection::reads || any() < 0) return;
  if (new_path_.empty() && bytes_now() <= former_bytes_) return;
  if (direct_) buffered_ = FileDescriptor();  // the lease is for the only descriptor
  const bool is_own = take_lease(any()) && !has_bytes_of_others();
  if (is_own && (new_path_.empty() ? ::ftruncate(any(), static_cast<off_t>(former_bytes_)) == 0 : remove_new())) return;
  log(LogLevel::warning,
      fmt::format("a write to {} failed, and what it has made of the file stays: {}", text(),
                  is_own ? text_of_error(errno) : "others may use it, or its file system has no leases or no holes"));
}

/// Whether another writer has been beyond the former length. Only bytes of the range are this one's.
bool OpenFile::has_bytes_of_others() const {
  std::int64_t found = ::lseek(any(), static_cast<off_t>(former_bytes_), SEEK_DATA);
  if (found >= static_cast<std::int64_t>(range_.offset) && found < static_cast<std::int64_t>(range_.end()))
    found = ::lseek(any(), static_cast<off_t>(range_.end()), SEEK_DATA);
  return found >= 0 || errno != ENXIO;
}

/// Unless its name belongs to another file now.
bool OpenFile::remove_new() const {
  return !beeline::detail::has_name(any(), AT_FDCWD, new_path_.c_str()) || ::unlink(new_path_.c_str()) == 0;
}

std::string OpenFile::text() const { return fmt::format("the file {}", path_.string()); }

void OpenFile::fail(int error_number, std::uint64_t offset) const {
  const char* const verb = direction_ == FileDirection::reads ? "reading" : "writing";
  if (error_number == EFAULT)
    throw Error(Status::invalid_argument,
                fmt::format("{} {} at offset {}: the memory of this block is not mapped, or may not be {}", verb,
                            text(), offset, direction_ == FileDirection::reads ? "written" : "read"));
  if (error_number == ECANCELED)  // of io_uring, whose kernel threads do some calls
    throw Error(Status::no_resource,
                fmt::format("{} {} at offset {}: the kernel may start no thread for io_uring; a limit on processes and "
                            "threads (ulimit -u, or pids.max of the container) is reached",
                            verb, text(), offset));
  throw Error(status_of_file_error(error_number),
              fmt::format("{} {} at offset {}: {}", verb, text(), offset, text_of_error(error_number)));
}

void OpenFile::check_kind(unsigned mode) const {
  if (S_ISREG(mode)) return;
  const char* const kind = S_ISDIR(mode)    ? "a directory"
                           : S_ISFIFO(mode) ? "a pipe"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  throw Error(Status::invalid_argument, fmt::format("{} is {}: a regular file is needed", path_.string(), kind));
}

void OpenFile::open_for_reading() {
  buffered_ = opened(path_, O_RDONLY);
  struct ::stat about {};
  if (!buffered_ || ::fstat(buffered_.get(), &about) != 0)
    throw Error(status_of_file_error(errno), fmt::format("{} cannot be read: {}", text(), text_of_error(errno)));
  check_kind(about.st_mode);
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (range_.end() > bytes)
    throw Error(Status::invalid_argument, fmt::format("{} has {} bytes: {} bytes at offset {} were asked for", text(),
                                                      bytes, range_.bytes, range_.offset));
}

void OpenFile::open_for_writing() {
  // The kernel ends a process by a signal that goes beyond this limit.
  struct ::rlimit limit {};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (is_limited && range_.end() > limit.rlim_cur)
    throw Error(Status::no_resource,
                fmt::format("{} bytes at offset {} of {} go beyond RLIMIT_FSIZE, {} bytes (ulimit -f)", range_.bytes,
                            range_.offset, text(), limit.rlim_cur));
  struct ::stat about {};
  if (::stat(path_.c_str(), &about) == 0) check_kind(about.st_mode);
  // A failed write may remove its new file after this one has found the name. Links are followed, since a path such as
  // /dev/fd/3 leads to a file that may have no name. Some file systems number files anew with each look, so that the
  // attempts are limited.
  constexpr int follow_links = 0;
  for (int left = 100; left > 0 && open_or_make(); --left)
    if (!new_path_.empty() || beeline::detail::has_name(buffered_.get(), AT_FDCWD, path_.c_str(), follow_links)) break;
  if (!buffered_ || ::fstat(buffered_.get(), &about) != 0)
    throw Error(status_of_file_error(errno), fmt::format("{} cannot be written: {}", text(), text_of_error(errno)));
  check_kind(about.st_mode);
  if (new_path_.empty()) former_bytes_ = static_cast<std::uint64_t>(about.st_size);
  reserve_room();
}

/// Returns false, with the error's number in `errno`, if neither is possible.
bool OpenFile::open_or_make() {
  buffered_ = opened(path_, O_WRONLY);
  if (buffered_ || errno != ENOENT) return static_cast<bool>(buffered_);
  std::error_code unknown;  // the current folder was removed: nothing can be made there
  std::filesystem::path absolute = std::filesystem::absolute(path_, unknown);
  buffered_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_CREAT | O_EXCL, 0666));
  if (buffered_) new_path_ = std::move(absolute);
  if (!buffered_ && errno == EEXIST)  // made meanwhile; or a symbolic link to nothing, which is not followed
    buffered_ = opened(path_, O_WRONLY);
  return static_cast<bool>(buffered_);
}

/// A file system without room refuses here, before any byte is written; and blocks of a file whose length grows with
/// each of them would take turns.
void OpenFile::reserve_room() {
  if (range_.bytes == 0 || range_.end() <= former_bytes_) return;
  const auto offset = static_cast<off_t>(range_.offset), bytes = static_cast<off_t>(range_.bytes);
  is_in_new_room_ = ::fallocate(buffered_.get(), 0, offset, bytes) == 0;
  if (is_in_new_room_ || errno == EOPNOTSUPP) return;
  const int reason = errno;
  restore();
  throw Error(status_of_file_error(reason), fmt::format("no room for {} bytes at offset {} of {}: {}", range_.bytes,
                                                        range_.offset, text(), text_of_error(reason)));
}

void OpenFile::open_direct(FileAccess access) {
  const bool is_long = range_.bytes >= cache_page_bytes;
  const bool looks = is_long && access == FileAccess::automatic && direction_ == FileDirection::reads;
  const std::int64_t cached = looks ? cached_pages(buffered_.get(), range_) : 0;
  const bool is_direct = is_long && access != FileAccess::buffered && (!looks || cached < pages_of(range_));
  // O_NONBLOCK was for opening alone: with it some kernels end calls before they have moved anything.
  if (!is_direct || ::fcntl(buffered_.get(), F_SETFL, O_DIRECT) != 0) {
    static_cast<void>(::fcntl(buffered_.get(), F_SETFL, 0));
    if (is_direct) refuse_direct();
    return;
  }
  direct_ = std::move(buffered_);
  const DirectAlignment asked = direct_alignment_of(direct_.get());
  if (asked.memory != 0) memory_alignment_ = asked.memory;
  offset_alignment_ = std::max<std::size_t>(asked.offset, cache_page_bytes);
  asks_cache_ = cached > 0;
}

int OpenFile::buffered() {
  if (buffered_) return buffered_.get();
  // The same file, even if its name now belongs to another one.
  const std::string name = fmt::format("/proc/self/fd/{}", direct_.get());
  buffered_ =
      FileDescriptor(::open(name.c_str(), (direction_ == FileDirection::reads ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
  if (!buffered_) {  // such as a new file whose mode, by the umask, does not permit what its maker may do
    if (::fcntl(direct_.get(), F_SETFL, 0) != 0) fail(errno, range_.offset);
    buffered_ = std::move(direct_);
  }
  return buffered_.get();
}

/// Leaves the descriptor open, since calls may be in flight.
void OpenFile::refuse_direct() {
  is_direct_refused_ = true;
  static std::atomic<bool> is_said{false};
  if (is_said.exchange(true)) return;
  log(LogLevel::warning,
      fmt::format("{}: its file system refuses O_DIRECT; such files go through the page cache", text()));
}

bool OpenFile::is_cached(const FileRange& part) const {
  return asks_cache_ && cached_pages(any(), part) >= pages_of(part);
}

FileDescriptor OpenFile::folder_to_sync() const {
  if (new_path_.empty()) return {};
  FileDescriptor opened(::open(new_path_.parent_path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!opened) fail_folder(errno);
  return opened;
}

void OpenFile::fail_folder(int error_number) const {
  throw Error(Status::internal, fmt::format("the name of {} is not durable: {}", text(), text_of_error(error_number)));
}

std::uint64_t OpenFile::bytes_now() const {
  struct ::stat about {};
  return ::fstat(any(), &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
}

}  // namespace beeline::hpe::detail
