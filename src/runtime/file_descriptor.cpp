// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/file_descriptor.hpp"

#include <unistd.h>

namespace beeline {

void FileDescriptor::reset() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace beeline
