// SPDX-License-Identifier: Apache-2.0
// expect: use of deleted function
#include "beeline/runtime/file_descriptor.hpp"

void misuse(const beeline::FileDescriptor& descriptor) { beeline::FileDescriptor copy = descriptor; }
