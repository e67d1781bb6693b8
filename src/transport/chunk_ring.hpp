// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Staging of transfers by one side alone, through a ring of buffers in host memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Buffers through which transfers go in chunks: a stream of the transfer copies each chunk out of the source, another
/// delivers it to the destination. Events order the streams, so no thread waits. One thread at a time.
class ChunkRing {
 public:
  ///   in       delivers chunks to destinations
  ///   buffers  [buffer_bytes] host memory that the devices of all streams reach
  /// Both outlive this object.
  ChunkRing(Stream& in, std::byte* buffers, std::size_t buffer_bytes)
      : in_(in), buffers_(buffers), buffer_bytes_(buffer_bytes) {}

  /// Divides the buffers into `count` of `chunk_bytes` each, for later transfers. They must fit: see `fits`.
  ///   out  stream of the next transfer. All transfers copy out of sources by streams of one device
  void divide(Stream& out, std::size_t chunk_bytes, std::size_t count);
  [[nodiscard]] bool fits(std::size_t chunk_bytes, std::size_t count) const {
    return count <= buffer_bytes_ / chunk_bytes;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Orders later work of a stream after all uses of the buffers so far.
  void let_follow(Stream& stream);

  struct Chunk {
    std::size_t offset, bytes;
    const std::byte* buffer;
    std::size_t number;  ///< of the buffer
    std::size_t freed;   ///< number of the buffer that may be used again once the stream has passed this delivery
  };
  struct Transfer {
    const std::byte* source;
    std::size_t bytes;
    std::size_t chunk_bytes;  ///< at most those of `divide`
    std::size_t lag = 0;      ///< number of later chunks after whose delivery a buffer may be used again; less than
                              ///< `count()`. 0: a delivery, once the stream has passed it, no longer reads the buffer
  };
  /// Enqueues the copies of a transfer. The event `last()` is behind the last delivery of a transfer without a lag.
  ///   out             copies chunks out of the source
  ///   deliver(chunk)  enqueues the delivery of a chunk on the stream `in`
  template <class Deliver>
  void stage(Stream& out, const Transfer& transfer, const Deliver& deliver);
  /// As `stage`, for one chunk without a lag. One stream makes both copies, which saves the events between two streams.
  ///   deliver(buffer)  enqueues the delivery on `stream`
  template <class Deliver>
  void stage_whole(Stream& stream, const std::byte* source, std::size_t bytes, const Deliver& deliver);
  /// After a transfer: frees its buffers that are not free yet once the stream `in` has done its present work. Then
  /// `last()` is behind that work, too.
  void free_rest();
  /// See `stage`.
  [[nodiscard]] Event& last() const { return *events_[last_].emptied; }

 private:
  struct Buffer {
    std::unique_ptr<Event> filled, emptied;
  };
  /// Takes the next buffer, and orders `out` after its last use.
  std::byte* take(Stream& out);

  Stream& in_;
  std::byte* const buffers_;
  const std::size_t buffer_bytes_;
  std::size_t chunk_bytes_ = 0, count_ = 0;
  std::size_t last_ = 0;        ///< number of the buffer taken last
  std::size_t unfreed_ = 0;     ///< buffers of the last transfer that are not free yet
  std::vector<Buffer> events_;  ///< [the largest count so far]
};

template <class Deliver>
void ChunkRing::stage(Stream& out, const Transfer& transfer, const Deliver& deliver) {
  unfreed_ = 0;
  for (std::size_t offset = 0; offset < transfer.bytes; offset += transfer.chunk_bytes) {
    const std::size_t piece = std::min(transfer.chunk_bytes, transfer.bytes - offset);
    std::byte* const buffer = take(out);
    const std::size_t number = last_, freed = (number + count_ - transfer.lag) % count_;
    out.copy(buffer, transfer.source + offset, piece);
    out.record(*events_[number].filled);
    in_.wait_event(*events_[number].filled);
    deliver(Chunk{offset, piece, buffer, number, freed});
    // The first chunks free no buffers: those belong to other transfers, which other streams may deliver.
    if (++unfreed_ > transfer.lag) in_.record(*events_[freed].emptied), --unfreed_;
  }
}

template <class Deliver>
void ChunkRing::stage_whole(Stream& stream, const std::byte* source, std::size_t bytes, const Deliver& deliver) {
  std::byte* const buffer = take(stream);
  stream.copy(buffer, source, bytes);
  deliver(buffer);
  stream.record(*events_[last_].emptied);
}

}  // namespace beeline
