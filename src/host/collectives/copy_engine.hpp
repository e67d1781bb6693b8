// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce by the devices' copy engines: they move the data, a kernel combines it.

#include <memory>
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

/// Each member fetches its part from all others, chunk by chunk, combines it, and sends it to all: fetching, combining
/// and sending go on at the same time on streams of their own, tied to the caller's by events.
///
/// Source: seed 000, 6.8.3 (all-to-all + all-gather), with copies of engines.
class EngineAllreduce {
 public:
  EngineAllreduce(World& world, const Context& context, const CollectiveChannel& channel);
  /// Asynchronous, in the order of the caller's stream.
  void run(const EngineCall& call);

 private:
  /// A part of this member's part.
  struct Chunk {
    std::size_t offset, bytes;  ///< from the vectors' start
    unsigned half;              ///< of the fetched chunks' memory
  };
  void fetch(const EngineCall& call, const Chunk& chunk);
  void combine(const EngineCall& call, const Chunk& chunk);
  void send(const EngineCall& call, const Chunk& chunk);
  void follow(const std::vector<std::unique_ptr<Stream>>& streams, Event& event);
  [[nodiscard]] std::byte* slot(unsigned half, std::uint32_t other) const;

  World& world_;
  const Context& context_;
  const CollectiveChannel& channel_;
  std::size_t slot_bytes_;
  std::vector<std::unique_ptr<Stream>> fetching_, sending_;  ///< [others], by distance on the ring of members
  std::vector<std::unique_ptr<Event>> fetched_[2], sent_;    ///< of each stream
  std::unique_ptr<Event> combined_[2], met_;
};

}  // namespace beeline::detail
