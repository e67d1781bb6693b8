// SPDX-License-Identifier: Apache-2.0
// Replaces uring_io.cpp and liburing.cpp in builds without liburing's headers.
#include "beeline/core/error.hpp"
#include "hpe/files/block_io.hpp"

namespace beeline::hpe::detail {

std::unique_ptr<BlockIo> make_uring_io(unsigned) {
  throw Error(Status::unavailable, "this build has no liburing: install Debian's liburing-dev, and build again");
}

}  // namespace beeline::hpe::detail
