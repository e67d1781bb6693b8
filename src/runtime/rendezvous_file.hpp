// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How ranks find rank 0's rendezvous server without a launcher: by a file that only their user can read, under a name
/// made from the job's identity. Ranks of one host meet in TMPDIR (or /tmp), ranks of several in the user's home, which
/// their hosts share.
///
/// On one host rank 0 holds a lock on the file as long as it lives. A file without a lock was left by a rank 0 that was
/// killed: the next rank 0 replaces it, and other ranks do not accept it. Between hosts file systems may have no locks:
/// there rank 0 replaces any file of its job, and other ranks try the address in a file until it answers. If a server
/// refuses the token there, the file may be of an earlier job, whose port another world's server has got: the ranks
/// then show no server anything until there is another file.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// The content of the file.
struct Publication {
  std::string address;  ///< host:port of the server
  std::string token;    ///< the world's secret; empty if every rank has it already

  bool operator==(const Publication&) const = default;
};

/// Which ranks a file is for.
enum class Readers { one_host, several_hosts };

class RendezvousFile {
 public:
  /// Publishes for `job`, a line of text. Throws invalid_argument (another process is rank 0 of this job, or other
  /// users have access to the folder), no_resource (the file cannot be made), deadline.
  RendezvousFile(const std::string& job, const Publication& publication, const Deadline& deadline,
                 Readers readers = Readers::one_host);
  /// Removes the file.
  ~RendezvousFile();

 private:
  void lock_folder(const Deadline& deadline) const;
  /// Throws if the file of a rank 0 that lives is there.
  void refuse_a_second() const;
  void write(const std::string& text, const std::string& name);
  /// Throws unless `result`, of a system call that has just returned, is 0.
  void require_done(int result, std::string_view what) const;

  std::string path_;  ///< of the folder
  FileDescriptor folder_;
  std::string name_;
  FileDescriptor file_;  ///< of one host: locked while it is open
};

/// The result of looking for `job`'s file.
struct PublicationLook {
  bool found = false;
  Publication publication{};  ///< valid if `found`
  std::string process{};      ///< number of the process that has made the file, as its host counts; valid if `found`
  std::string path{};         ///< of the file
  std::string why_not{};      ///< why it was not found; else empty

  bool operator==(const PublicationLook&) const = default;
};

/// Throws invalid_argument if other users have access to the file or folder.
[[nodiscard]] PublicationLook look_for_publication(const std::string& job, Readers readers = Readers::one_host);

}  // namespace beeline::detail
