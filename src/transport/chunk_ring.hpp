// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Staging of a transfer by one side alone: two streams and a ring of buffers in host memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Buffers through which a transfer goes in chunks: one stream copies each chunk out of the source, the other delivers
/// it to the destination. Events order the two streams, so no thread waits. One thread at a time.
class ChunkRing {
 public:
  ///   out      copies chunks out of sources
  ///   in       delivers chunks to destinations
  ///   buffers  [buffer_bytes] host memory that the devices of both streams reach
  /// All outlive this object.
  ChunkRing(Stream& out, Stream& in, std::byte* buffers, std::size_t buffer_bytes)
      : out_(out), in_(in), buffers_(buffers), buffer_bytes_(buffer_bytes) {}

  /// Divides the buffers into `count` of `chunk_bytes` each, for later transfers. They must fit: see `fits`.
  void divide(std::size_t chunk_bytes, std::size_t count);
  [[nodiscard]] bool fits(std::size_t chunk_bytes, std::size_t count) const {
    return count <= buffer_bytes_ / chunk_bytes;
  }
  [[nodiscard]] std::size_t count() const { return count_; }

  struct Chunk {
    std::size_t offset, bytes;
    const std::byte* buffer;
    std::size_t number;  ///< of the buffer
    std::size_t freed;   ///< number of the buffer that may be used again once the stream has passed this delivery
  };
  /// Enqueues the copies of a transfer.
  ///   lag  number of later chunks after whose delivery a buffer may be used again; less than `count()`. 0: a chunk's
  ///        delivery, once the stream has passed it, no longer reads the buffer
  ///   deliver(chunk)  enqueues the delivery of a chunk on the stream `in`
  template <class Deliver>
  void stage(const std::byte* source, std::size_t bytes, std::size_t lag, const Deliver& deliver);
  /// Marks all buffers as free once the stream `in` has done its present work: for transfers with a lag.
  void free_all();

 private:
  struct Buffer {
    std::unique_ptr<Event> filled, emptied;
  };

  Stream &out_, &in_;
  std::byte* const buffers_;
  const std::size_t buffer_bytes_;
  std::size_t chunk_bytes_ = 0, count_ = 0, next_ = 0;
  std::vector<Buffer> events_;  ///< [the largest count so far]
};

template <class Deliver>
void ChunkRing::stage(const std::byte* source, std::size_t bytes, std::size_t lag, const Deliver& deliver) {
  for (std::size_t offset = 0; offset < bytes; offset += chunk_bytes_) {
    const std::size_t piece = std::min(chunk_bytes_, bytes - offset), number = next_++ % count_;
    std::byte* const buffer = buffers_ + number * chunk_bytes_;
    const std::size_t freed = (number + count_ - lag) % count_;
    out_.wait_event(*events_[number].emptied);  // by the chunk that used it before
    out_.copy(buffer, source + offset, piece);
    out_.record(*events_[number].filled);
    in_.wait_event(*events_[number].filled);
    deliver(Chunk{offset, piece, buffer, number, freed});
    in_.record(*events_[freed].emptied);
  }
}

}  // namespace beeline
