// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How the ranks of one host find rank 0's rendezvous server without a launcher: by a file that only their user can
/// read, in TMPDIR (or /tmp), under a name made from the job's identity.
///
/// Rank 0 holds a lock on the file as long as it lives. A file without a lock was left by a rank 0 that was killed: the
/// next rank 0 replaces it, and other ranks do not accept it.

#include <sys/types.h>

#include <string>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// The content of the file.
struct Publication {
  std::string address;  ///< host:port of the server
  std::string token;    ///< the world's secret; empty if every rank has it already
};

class RendezvousFile {
 public:
  /// Publishes for `job`, a line of text. Throws invalid_argument (another process is rank 0 of this job, or other
  /// users have access to the folder), no_resource (the file cannot be made), deadline.
  RendezvousFile(const std::string& job, const Publication& publication, const Deadline& deadline);
  /// Removes the file.
  ~RendezvousFile();

 private:
  void replace_stale() const;
  void write(const std::string& text) const;

  FileDescriptor folder_;
  std::string name_;
  FileDescriptor file_;  ///< locked while it is open
};

/// The result of looking for `job`'s file.
struct PublicationLook {
  bool found = false;
  Publication publication;  ///< valid if `found`
  std::string why_not;      ///< why it was not found; else empty
};

/// Throws invalid_argument if other users have access to the file or folder.
[[nodiscard]] PublicationLook look_for_publication(const std::string& job);

}  // namespace beeline::detail
