// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives by the devices' copy engines. The engines move the data, kernels combine it.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"
#include "host/collectives/engine_chunk.hpp"
#include "transport/recorded_work.hpp"

namespace beeline::detail {

/// Copies to a member's symmetric memory after a handshake. A host rank copies only if the handshake found the members'
/// calls equal, so different calls touch nothing. A GPU's stream cannot branch: it copies in any case.
void copy_after_handshake(Team& team, Stream& stream, std::byte* to, const std::byte* from, std::size_t bytes);

/// An all-reduce's vectors, anywhere in memory that this rank reaches.
struct EngineCall {
  std::byte* destination;  ///< may be `source`
  const std::byte* source;
  CallDescription call;
  Stream* stream;  ///< the caller's
  bool symmetric;  ///< the caller asserts that both vectors are symmetric
};

/// *All-reduce of two members.* Each member sends its whole vector to the other and combines both vectors. The link
/// carries as much as if each combined a half and returned it, but no copy waits for a result. Chunks go to the slots
/// of the scratch memory in turn, and results directly to the destination, so vectors may have any address.
///
///     link     S0 S1 S2 S3 ...        S: a chunk to the other member
///     kernels     C0 C1 C2 C3 ...     C: each combines the arrived chunk with its own
///
/// *All-reduce of more than two members.* Each part is copied to the scratch memory of its owner, which combines it.
/// The result is copied to the scratch memory of all members, which take it to their destinations; or directly to the
/// destinations if the caller asserts that these are symmetric. All copies over the link are writes, since engines read
/// over it more slowly. The copies are on one stream, one after the other, since concurrent copies take longer
/// together. The kernels are on another stream, of high priority, since copies wait for their results.
///
///     link     S0 S1 R0 S2    R1 S3    R2 ...     S: parts of a chunk to their owners, R: its result to all
///     kernels     C0    C1 T0    C2 T1    ...     C: the owners combine the chunk, T: all take its result
///
/// Copies are few and large, since each takes time to start. If members take results from scratch memory, the last
/// chunks are shorter, since nothing overlaps with taking the last one. Each rank copies to a different peer; ranks
/// that drift apart would copy to the same peer, so more than two members have a handshake with every chunk.
///
/// *Moving data.* Pieces are copied to the scratch memory of their receivers, which copy them to the destinations.
///
/// Source: seed 000, 6.8.3 (all-to-all + all-gather), with copies by engines.
class CopyEngines {
 public:
  /// `scratch`: symmetric memory for chunks, of at least `least_bytes`, the same on all members.
  CopyEngines(Team& team, const CollectiveChannel& channel, std::span<std::byte> scratch);

  /// Bytes of scratch memory for this number of members: with more, nothing is gained (`most_bytes`); with less, other
  /// algorithms are faster (`useful_bytes`), or no call works (`least_bytes`).
  [[nodiscard]] static std::size_t most_bytes(std::size_t members);
  [[nodiscard]] static std::size_t useful_bytes(std::size_t members);
  [[nodiscard]] static std::size_t least_bytes(std::size_t members);

  /// Asynchronous, in the order of the caller's stream. A GPU rank records a call when it is repeated: a long call has
  /// a hundred copies, kernels and events, which the CPU takes longer to issue than a short call takes to run.
  void allreduce(const EngineCall& call);
  /// As `allreduce`, for collectives that only move data. Vectors may be anywhere in memory that this rank reaches.
  void move(const MovementPlan& plan, Stream& stream);

 private:
  using Chunk = EngineChunk;
  /// Division of the scratch memory: the numbers of slots for arriving chunks and for results.
  struct Slots {
    std::size_t arrivals, results;
  };
  /// A result is taken two chunks after its own chunk. The third chunk writes its slot again, after another handshake.
  static constexpr Slots staged{2, 3}, direct{2, 0};  ///< results are taken from scratch memory, or copied directly
  static constexpr Slots moved{4, 0};                 ///< data are only moved, or are reduced at their destination
  /// The chunks of the longest part, which use the slots in turn. Their lengths are equal, or decrease towards the end.
  [[nodiscard]] std::vector<Chunk> chunks(std::size_t part, Slots slots, bool equal) const;
  /// An earlier call, and its recording.
  struct Repeated {
    EngineCall call;
    std::unique_ptr<RecordedWork> work;  ///< nullptr: the call was made once
  };
  /// Finds the entry of an equal earlier call. If there is none, stores the call in place of the least recent one and
  /// returns nullptr.
  [[nodiscard]] Repeated* known(const EngineCall& call);
  void issue(const EngineCall& call);
  void exchange(const EngineCall& call, std::size_t part);
  /// For two members: each combines both whole vectors.
  void exchange_whole(const EngineCall& call);
  /// Sends chunk by chunk. Takes a chunk after the handshake that follows it, while the next chunks are in flight.
  ///   send, take  called with a chunk: enqueue its copies on `copying_`, and the use of the copied data on
  ///               `combining_`
  template <class Send, class Take>
  void in_turns(Operation operation, const std::vector<Chunk>& all, const Send& send, const Take& take);
  /// For symmetric vectors whose parts all fit the scratch memory: one copy to each peer, in two halves to one of them.
  void run_halves(const EngineCall& call, const Chunk& whole);
  /// For symmetric vectors: results are copied to the peers' destinations.
  void run_direct(const EngineCall& call, const std::vector<Chunk>& all);
  /// For other vectors: results are copied to the peers' scratch memory, and from there to the destination two chunks
  /// later. The caller of this function takes the last chunk's result, after a handshake.
  void run_staged(const EngineCall& call, const std::vector<Chunk>& all);
  /// Copies the parts of a chunk to their owners while the previous chunk is reduced; then a handshake.
  void scatter_next(const EngineCall& call, const std::vector<Chunk>& all, std::size_t next);
  [[nodiscard]] EnginePiece piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const;
  /// Address in the scratch memory of `holder` for data from `other`.
  [[nodiscard]] std::byte* arrival(const Chunk& chunk, std::uint32_t holder, std::uint32_t other) const;
  /// Sends a peer its piece of the chunk.
  void send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance);
  void scatter(const EngineCall& call, const Chunk& chunk);
  void combine(const EngineCall& call, const Chunk& chunk);
  /// Reduces a piece of this member's vector and the pieces that have arrived from the others.
  void combine_piece(const EngineCall& call, const Chunk& chunk, const EnginePiece& mine);
  /// Copies this member's piece of the result to a peer.
  void return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance, Stream& stream);
  /// Copies the piece to all peers, after it has been reduced.
  void return_result(const EngineCall& call, const Chunk& chunk, Stream& stream);
  /// Copies the peers' pieces of the result, which have arrived, to the destination.
  void take(const EngineCall& call, const Chunk& chunk, Stream& stream);
  /// A handshake. After it all members have reached this point, and their copies before `copied` are complete.
  void meet(Event& copied);
  /// As `meet`, for all copies so far.
  void meet_after_copies();
  /// Copies a chunk of this member's data to the scratch memory of its receivers.
  void send_pieces(const MovementPlan& plan, const Chunk& chunk);
  /// Copies the chunk that this member receives from scratch memory to the destination.
  void take_pieces(const MovementPlan& plan, const Chunk& chunk);
  void copy_own_piece(const MovementPlan& plan);
  /// `begin`: later work on this object's streams waits for earlier work on the caller's stream. `end`: the reverse.
  void begin(Stream& caller);
  void end(Stream& caller);
  [[nodiscard]] LaunchOptions handshake_on(Stream& stream, Operation operation) const;

  Team& team_;
  const Context& context_;
  const CollectiveChannel& channel_;
  std::span<std::byte> scratch_;  ///< [slots, others, a chunk]
  std::unique_ptr<Stream> copying_, returning_, combining_, recording_;
  std::vector<Repeated> repeated_;  ///< the most recent call last
  std::unique_ptr<Event> called_, copied_, returned_, met_, combined_;
  static constexpr std::size_t most_arrivals = 4;
  std::array<std::unique_ptr<Event>, most_arrivals>
      arrived_;  ///< for chunks that are only moved: the handshake of each
};

}  // namespace beeline::detail
