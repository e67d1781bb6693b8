// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce by the devices' copy engines: they move the data, a kernel combines it.

#include <memory>
#include <span>
#include <vector>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// Copies to a member's symmetric memory behind a meeting: on a host rank only if the members' calls agreed there, so
/// that nothing is touched where they did not. A GPU's stream cannot ask: what was enqueued is copied.
void copy_after_meeting(World& world, const Context& context, Stream& stream, std::byte* to, const std::byte* from,
                        std::size_t bytes);

/// A call's vectors, at the same place of the symmetric heap on all members.
struct EngineCall {
  std::byte* destination;  ///< may be `source`
  const std::byte* source;
  CallSignature call;
  Stream* stream;  ///< the caller's
};

/// Parts go to the memory of their owners, who combine them, and to all from there: what is copied is written over the
/// link, since engines read over it more slowly. The copies are on one stream, one after the other, since several at
/// once take longer together; kernels on another, of high priority, since copies wait for what they combine.
///
/// A copy takes its time to start, so copies are few and large. While one chunk is combined, the next is on its way.
/// Everyone copies to another, and ranks that drift apart would copy to the same: they meet with every chunk.
///
/// Source: seed 000, 6.8.3 (all-to-all + all-gather), with copies of engines.
class EngineAllreduce {
 public:
  /// `scratch`: symmetric memory for chunks, on all members alike; of at least `least_bytes`.
  EngineAllreduce(World& world, const Context& context, const CollectiveChannel& channel, std::span<std::byte> scratch);

  /// Scratch memory that is worth having for so many members, and the least that is enough.
  [[nodiscard]] static std::size_t wanted_bytes(const Context& context);
  [[nodiscard]] static std::size_t least_bytes(const Context& context);

  /// Asynchronous, in the order of the caller's stream.
  void run(const EngineCall& call);

 private:
  /// A part of each member's part.
  struct Chunk {
    std::size_t first, bytes;  ///< of a part
    std::size_t place;         ///< in every sender's piece of the scratch memory
  };
  struct Piece {
    std::size_t offset, bytes;  ///< from the vectors' start
  };
  void exchange(const EngineCall& call, std::size_t part);
  /// What fits the scratch memory at once: in two halves, to each peer but one in one copy.
  void run_halves(const EngineCall& call, std::size_t part);
  void run_chunks(const EngineCall& call, std::size_t part);
  [[nodiscard]] Piece piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const;
  /// Where an owner gets what `sender` sends of a chunk.
  [[nodiscard]] std::byte* place(const Chunk& chunk, std::uint32_t owner, std::uint32_t sender) const;
  /// Copies a peer's piece of the chunk to it.
  void send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance);
  void scatter(const EngineCall& call, const Chunk& chunk);
  void combine(const EngineCall& call, const Chunk& chunk);
  /// Copies this member's piece of the result to a peer.
  void return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance);
  /// All have come here, and their copies so far are over.
  void meet();
  [[nodiscard]] LaunchOptions meeting_on(Stream& stream) const;

  World& world_;
  const Context& context_;
  const CollectiveChannel& channel_;
  std::byte* scratch_;  ///< [others, 2, chunk_bytes_]
  std::size_t chunk_bytes_;
  std::unique_ptr<Stream> copying_, combining_;
  std::unique_ptr<Event> called_, copied_, met_, combined_;
};

}  // namespace beeline::detail
