// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the ranks of one host find rank 0's rendezvous server when no launcher tells them: a file that only their user
/// can read, in TMPDIR (or /tmp), under a name made from the job's identity.
///
/// Rank 0 holds a lock on the file as long as it lives. A file without the lock was left behind by a rank 0 that was
/// killed: it is replaced by the next rank 0, and no other rank accepts it.

#include <sys/types.h>

#include <string>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// What the file says.
struct Publication {
  std::string address;  ///< host:port of the server
  std::string token;    ///< the world's secret; empty where every rank has it already
};

class RendezvousFile {
 public:
  /// Publishes for `job`, a line of text. Throws invalid_argument (another process is rank 0 of this job, or the folder
  /// is not this user's alone), no_resource (no file can be made), deadline.
  RendezvousFile(const std::string& job, const Publication& publication, const Deadline& deadline);
  /// Removes the file.
  ~RendezvousFile();

 private:
  void replace_stale() const;
  void write(const std::string& text) const;

  FileDescriptor folder_;
  std::string name_;
  FileDescriptor file_;  ///< locked
};

/// One look at `job`'s file.
struct PublicationLook {
  bool found = false;
  Publication publication;  ///< if found
  std::string why_not;      ///< otherwise
};

/// Throws invalid_argument where file or folder are not this user's alone.
[[nodiscard]] PublicationLook look_for_publication(const std::string& job);

}  // namespace beeline::detail
