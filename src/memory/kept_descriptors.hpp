// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptors of memory that another process has made, for later mappings.

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

/// By the address where the memory is mapped. Thread-safe.
class KeptDescriptors {
 public:
  /// Keeps a copy of a descriptor. Where the system gives none, the reason: the memory itself is of use without it.
  void keep(const std::byte* address, int descriptor) {
    Kept kept{FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), errno};
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(address, std::move(kept));
  }
  void forget(const std::byte* address) {
    const std::lock_guard lock(mutex_);
    kept_.erase(address);
  }
  /// Another copy; none: nothing was kept for this address. Throws no_resource where it could not be copied, now or
  /// then.
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
    int error;  ///< where there is none
  };
  [[noreturn]] static void refuse(const char* when, int error) {
    throw Error(Status::no_resource, std::string("the descriptor of another process's memory could not be copied ") +
                                         when + ": " + std::generic_category().message(error));
  }

  mutable std::mutex mutex_;
  std::map<const std::byte*, Kept> kept_;
};

}  // namespace beeline
