// SPDX-License-Identifier: Apache-2.0
#include "transports/staging_buffers.hpp"

namespace beeline {

StagingBuffers::StagingBuffers(bool is_pinned)
    : memory_(count * staging_bytes, is_pinned, "to stage what crosses nodes") {
  for (std::size_t i = 0; i < count; ++i) free_.push_back(memory_.data() + i * staging_bytes);
}

}  // namespace beeline
