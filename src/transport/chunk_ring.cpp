// SPDX-License-Identifier: Apache-2.0
#include "transport/chunk_ring.hpp"

namespace beeline {

void ChunkRing::divide(std::size_t chunk_bytes, std::size_t count) {
  if (chunk_bytes == chunk_bytes_ && count == count_) return;
  for (std::size_t number = 0; number < count_; ++number)  // the new buffers overlap several of the old ones
    out_.wait_event(*events_[number].emptied);
  while (events_.size() < count) events_.push_back({out_.make_event(), in_.make_event()});
  chunk_bytes_ = chunk_bytes, count_ = count, next_ = 0;
}

void ChunkRing::free_all() {
  for (std::size_t number = 0; number < count_; ++number) in_.record(*events_[number].emptied);
}

}  // namespace beeline
