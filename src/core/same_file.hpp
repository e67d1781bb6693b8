// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Files whose names may have been given to others meanwhile.

#include <fcntl.h>
#include <sys/stat.h>

namespace beeline::detail {

/// Whether a name in a folder (or AT_FDCWD) belongs to an open file.
///   links  0: symbolic links are followed
inline bool has_name(int file, int folder, const char* name, int links = AT_SYMLINK_NOFOLLOW) {
  struct stat own {};
  struct stat named {};
  return ::fstat(file, &own) == 0 && ::fstatat(folder, name, &named, links) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

}  // namespace beeline::detail
