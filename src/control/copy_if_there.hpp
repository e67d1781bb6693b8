// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies of memory that a poster has named, and that may not be mapped.

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace beeline::detail {

/// Copies within this process. Returns false, instead of a fault, if not all of the memory is mapped.
inline bool copy_if_there(std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{to, bytes}, there{const_cast<std::byte*>(from), bytes};
    const ssize_t copied = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    to += copied, from += copied, bytes -= static_cast<std::size_t>(copied);
  }
  return true;
}

}  // namespace beeline::detail
