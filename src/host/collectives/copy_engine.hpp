// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce by the devices' copy engines: they move the data, a kernel combines it.

#include <memory>
#include <span>
#include <vector>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// A call's vectors, at the same place of the symmetric heap on all members.
struct EngineCall {
  std::byte* destination;  ///< may be `source`
  const std::byte* source;
  CallSignature call;
  Stream* stream;  ///< the caller's
};

/// Parts go to the memory of their owners, who combine them, and to all from there: what is copied is written over the
/// link, since engines read over it more slowly. Chunk by chunk: copies on a stream of their own, one after
/// the other, since several at once take longer together; beside them, on the caller's stream, a meeting for each chunk
/// and its combination.
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
    unsigned slot;             ///< of the scratch memory
  };
  struct Piece {
    std::size_t offset, bytes;  ///< from the vectors' start
  };
  [[nodiscard]] std::vector<Chunk> chunks_of(const EngineCall& call) const;
  [[nodiscard]] Piece piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const;
  /// Where an owner gets what `sender` sends of a chunk.
  [[nodiscard]] std::byte* slot(const Chunk& chunk, std::uint32_t owner, std::uint32_t sender) const;
  void scatter(const EngineCall& call, const Chunk& chunk);
  void combine(const EngineCall& call, const Chunk& chunk);
  void cast(const EngineCall& call, const Chunk& chunk);
  /// All have come here, and made the copies before the last record.
  void meet(const EngineCall& call);

  World& world_;
  const Context& context_;
  const CollectiveChannel& channel_;
  std::byte* scratch_;
  std::size_t slot_bytes_;
  std::unique_ptr<Stream> copying_;
  std::unique_ptr<Event> copied_, met_, combined_;
};

}  // namespace beeline::detail
