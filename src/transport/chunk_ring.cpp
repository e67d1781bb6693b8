// SPDX-License-Identifier: Apache-2.0
#include "transport/chunk_ring.hpp"

#include <algorithm>

namespace beeline {

void ChunkRing::divide(Stream& out, std::size_t chunk_bytes, std::size_t count) {
  if (chunk_bytes == chunk_bytes_ && count == count_) return;
  while (events_.size() < count) events_.push_back({out.make_event(), in_.make_event()});
  // A new buffer may overlap several old ones, so its use follows all earlier uses of the ring.
  let_follow(out);
  for (std::size_t number = 0; number < count && count_ > 0; ++number) out.record(*events_[number].emptied);
  chunk_bytes_ = chunk_bytes, count_ = count, last_ = count - 1;
}

void ChunkRing::let_follow(Stream& stream) {
  for (std::size_t number = 0; number < count_; ++number) stream.wait_event(*events_[number].emptied);
}

std::byte* ChunkRing::take(Stream& out) {
  last_ = (last_ + 1) % count_;
  out.wait_event(*events_[last_].emptied);
  return buffers_ + last_ * chunk_bytes_;
}

void ChunkRing::free_rest() {
  unfreed_ = std::max<std::size_t>(unfreed_, 1);  // without a lag, `last()` is recorded once more
  for (; unfreed_ > 0; --unfreed_) in_.record(*events_[(last_ + count_ + 1 - unfreed_) % count_].emptied);
}

}  // namespace beeline
