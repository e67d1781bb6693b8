// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptors of memory made by other processes, for later mappings.

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

/// Descriptors, each kept under the address at which its memory is mapped. Thread-safe.
class KeptDescriptors {
 public:
  /// Keeps a copy of a descriptor. If the system gives no copy, keeps the error: the memory is usable without the copy.
  void keep(const std::byte* address, int descriptor) {
    Kept kept{FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), errno};
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(address, std::move(kept));
  }
  void forget(const std::byte* address) {
    const std::lock_guard lock(mutex_);
    kept_.erase(address);
  }
  /// Another copy; empty if nothing was kept for this address. Throws no_resource if copying fails, or failed in
  /// `keep`.
  [[nodiscard]] FileDescriptor copy_of(const std::byte* address) const {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(address);
    if (found == kept_.end()) return {};
    if (!found->second.descriptor) refuse("as it came", found->second.error);
    FileDescriptor copy(::fcntl(found->second.descriptor.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) refuse("again", errno);
    return copy;
  }

 private:
  struct Kept {
    FileDescriptor descriptor;
    int error;  ///< errno, if there is no descriptor
  };
  [[noreturn]] static void refuse(const char* when, int error) {
    throw Error(Status::no_resource, std::string("the descriptor of another process's memory could not be copied ") +
                                         when + ": " + std::generic_category().message(error));
  }

  mutable std::mutex mutex_;
  std::map<const std::byte*, Kept> kept_;
};

}  // namespace beeline
