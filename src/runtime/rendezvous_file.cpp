// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "core/same_file.hpp"
#include "runtime/socket.hpp"

namespace beeline::detail {

namespace {

constexpr std::string_view first_line = "beeline rendezvous 1";
constexpr std::size_t max_file_bytes = 16384;

/// The folder that a variable names as an absolute path; else `otherwise`.
std::string folder_of(const char* variable, const char* otherwise) {
  const char* chosen = std::getenv(variable);
  return chosen != nullptr && chosen[0] == '/' ? chosen : otherwise;
}

/// The folder for rendezvous files: in /tmp, or, if another user has made a folder of this name there, in this user's
/// runtime folder, if the system has one; for ranks on several hosts, in the home folder.
std::string folder_path(Readers readers) {
  if (readers == Readers::several_hosts) {
    const std::string home = folder_of("HOME", "");
    require(
        !home.empty(), Status::invalid_argument,
        "HOME names no folder in which ranks of several hosts meet: set BEELINE_TOKEN, MASTER_ADDR and MASTER_PORT");
    return home + "/.beeline";
  }
  const std::string path = fmt::format("{}/beeline-{}", folder_of("TMPDIR", "/tmp"), ::geteuid());
  struct stat status {};
  const bool is_taken = ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
  const std::string own = folder_of("XDG_RUNTIME_DIR", "");
  return is_taken && !own.empty() ? own + "/beeline" : path;
}

/// Equal jobs have equal names; the text of the files distinguishes different jobs with equal names.
std::string file_name(const std::string& job) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char character : job) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3;
  return fmt::format("world-{:016x}", hash);
}

/// Throws unless only this user can have written or read the file or folder.
void require_private(int descriptor, const std::string& path) {
  struct stat status {};
  const bool is_known = ::fstat(descriptor, &status) == 0;
  require(is_known, Status::internal, fmt::format("{}: {}", path, system_message(errno)));
  require(status.st_uid == ::geteuid(), Status::invalid_argument,
          fmt::format("{} belongs to user {}, not to user {}: it is not trusted; set TMPDIR to a folder in which only "
                      "this user can make files, the same for all ranks",
                      path, status.st_uid, ::geteuid()));
  require((status.st_mode & (S_IRWXG | S_IRWXO)) == 0, Status::invalid_argument,
          fmt::format("{} is open to other users (mode {:o}): it is not trusted; remove it", path,
                      status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)));
}

/// Opened anew for each look: NFS then asks its server whether there are new files.
FileDescriptor open_folder(const std::string& path) {
  const bool is_there = ::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST;
  require(is_there, Status::no_resource, fmt::format("{} cannot be made: {}", path, system_message(errno)));
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  require(static_cast<bool>(folder), Status::invalid_argument,
          fmt::format("{} is no folder that can be used: {}", path, system_message(errno)));
  require_private(folder.get(), path);
  return folder;
}

FileDescriptor open_file(const FileDescriptor& folder, const std::string& path, const std::string& name) {
  // does not block on a pipe
  FileDescriptor file(::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file) require_private(file.get(), path + "/" + name);
  return file;
}

bool owner_lives(const FileDescriptor& file) {
  return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::vector<std::string> read_lines(const FileDescriptor& file) {
  std::array<char, max_file_bytes> buffer;
  const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  std::vector<std::string> lines;
  std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines.emplace_back(text.substr(0, end));
  return lines;
}

}  // namespace

RendezvousFile::RendezvousFile(const std::string& job, const Publication& publication, const Deadline& deadline,
                               Readers readers)
    : path_(folder_path(readers)), folder_(open_folder(path_)), name_(file_name(job)) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", first_line, job, ::getpid(), publication.address, publication.token);
  const bool is_locked = readers == Readers::one_host;
  if (is_locked) {
    lock_folder(deadline);
    refuse_a_second();
  }
  const std::string unfinished = fmt::format("{}.{}", name_, make_token());
  try {
    write(text, unfinished);
    // Locked before it has the name by which others open it: whoever looks whether it is locked locks it meanwhile.
    if (is_locked) require_done(::flock(file_.get(), LOCK_EX | LOCK_NB), "locked");
    require_done(::renameat(folder_.get(), unfinished.c_str(), folder_.get(), name_.c_str()), "made");
  } catch (...) {
    ::unlinkat(folder_.get(), unfinished.c_str(), 0);
    throw;
  }
  if (is_locked) ::flock(folder_.get(), LOCK_UN);
}

void RendezvousFile::lock_folder(const Deadline& deadline) const {
  while (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {  // only one rank 0 at a time checks for and makes its file
    require(errno == EWOULDBLOCK || errno == EINTR, Status::no_resource,
            fmt::format("{} cannot be locked: {}", path_, system_message(errno)));
    require(!deadline.passed(), Status::deadline,
            fmt::format("{} was locked by another process for {} s", path_, deadline.total_seconds()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

RendezvousFile::~RendezvousFile() {
  // A later rank 0 of a restarted job on several hosts may have given this name to its own file.
  if (has_name(file_.get(), folder_.get(), name_.c_str())) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

void RendezvousFile::refuse_a_second() const {
  const FileDescriptor known = open_file(folder_, path_, name_);
  if (!known) return;
  const std::vector<std::string> lines = read_lines(known);
  require(!owner_lives(known), Status::invalid_argument,
          fmt::format("process {} is rank 0 of this job already, and its ranks have not all joined",
                      lines.size() > 2 ? lines[2] : "(unknown)"));
}

void RendezvousFile::write(const std::string& text, const std::string& name) {
  file_ = FileDescriptor(
      ::openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  require_done(file_ ? 0 : -1, "made");
  require(text.size() <= max_file_bytes, Status::no_resource,
          fmt::format("{}/{} cannot be written: too long", path_, name_));
  const bool is_whole = ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  require_done(is_whole ? 0 : -1, "written");
}

void RendezvousFile::require_done(int result, std::string_view what) const {
  const int error = errno;
  require(result == 0, Status::no_resource,
          fmt::format("{}/{} cannot be {}: {}", path_, name_, what, system_message(error)));
}

PublicationLook look_for_publication(const std::string& job, Readers readers) {
  const bool is_shared = readers == Readers::several_hosts;
  const std::string folder_name = folder_path(readers), name = file_name(job), path = folder_name + "/" + name;
  const FileDescriptor folder = open_folder(folder_name);
  const FileDescriptor file = open_file(folder, folder_name, name);
  if (!file)
    return {.why_not = fmt::format("it has not published an address in {}{}", path,
                                   is_shared ? ", a folder that all hosts must share; without one set BEELINE_TOKEN, "
                                               "MASTER_ADDR and MASTER_PORT"
                                             : "")};
  if (!is_shared && !owner_lives(file))
    return {.why_not = fmt::format("{} was left by a process that has ended", path)};
  const std::vector<std::string> lines = read_lines(file);
  if (lines.size() < 5) return {.why_not = fmt::format("{} is not complete", path)};
  if (lines[0] != first_line || lines[1] != job) return {.why_not = fmt::format("{} is another job's", path)};
  return {.found = true, .publication = {lines[3], lines[4]}, .process = lines[2], .path = path};
}

}  // namespace beeline::detail
