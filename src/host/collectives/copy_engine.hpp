// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives by the devices' copy engines: they move the data, a kernel combines it.

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
  bool symmetric;  ///< the caller asserts that both lie at the same place of all members' heaps
};

/// *All-reduce of two members.* Each sends the other its whole vector, and combines both: the link carries as much as
/// when both combine a half and return it, and no copy waits for a result. Chunks go to scratch memory, whose places
/// take turns, and results to the destination at once, so vectors lie anywhere.
///
///     link     S0 S1 S2 S3 ...        S: a chunk to the other member
///     kernels     C0 C1 C2 C3 ...     C: each combines what has come with its own
///
/// *All-reduce of more.* Parts go to scratch memory of their owners, who combine them, and from there to scratch memory
/// of all, who take them to their destinations; or to the destinations at once, where the caller asserts that these are
/// symmetric. What crosses the link is written, since engines read over it more slowly. These copies are on one stream,
/// one after the other, since several at once take longer together; kernels on another, of high priority, since copies
/// wait for what they combine.
///
///     link     S0 S1 R0 S2    R1 S3    R2 ...     S: parts of a chunk to their owners, R: its result to all
///     kernels     C0    C1 T0    C2 T1    ...     C: the owners combine the chunk, T: all take its result
///
/// A copy takes its time to start, so copies are few and large. Where results are taken, the last chunks are shorter,
/// since nothing hides the last one's taking. Everyone copies to another, and ranks that drift apart would copy to the
/// same: more than two meet with every chunk.
///
/// *Moving data.* Pieces go to scratch memory of those who get them, who copy them on.
///
/// Source: seed 000, 6.8.3 (all-to-all + all-gather), with copies of engines.
class CopyEngines {
 public:
  /// `scratch`: symmetric memory for chunks, of at least `least_bytes`, the same on all members.
  CopyEngines(Team& team, const CollectiveChannel& channel, std::span<std::byte> scratch);

  /// Scratch memory of so many members beyond which nothing is gained, below which other algorithms are quicker, and
  /// that is enough to work.
  [[nodiscard]] static std::size_t most_bytes(std::size_t members);
  [[nodiscard]] static std::size_t useful_bytes(std::size_t members);
  [[nodiscard]] static std::size_t least_bytes(std::size_t members);

  /// Asynchronous, in the order of the caller's stream. From its second time on, a GPU's call is recorded: a long one
  /// has a hundred copies, kernels and events, which take the CPU longer to issue than a short one to run.
  void allreduce(const EngineCall& call);
  /// The same for what only moves data, from and to vectors anywhere in memory that this rank reaches.
  void move(const MovementPlan& plan, Stream& stream);

 private:
  using Chunk = EngineChunk;
  /// What the scratch memory is divided into: so many places for chunks that come, and for results.
  struct Slots {
    std::size_t arrivals, results;
  };
  /// A result is taken two chunks later, and its place written again with the third, when all have met in between.
  static constexpr Slots staged{2, 3}, direct{2, 0};  ///< for results that are taken, or put where they belong
  static constexpr Slots moved{4, 0};                 ///< for data that is only moved, or reduced at its destination
  /// The chunks of the longest part; they use the slots in turn. All have one length, or get shorter towards the end.
  [[nodiscard]] std::vector<Chunk> chunks(std::size_t part, Slots slots, bool equal) const;
  /// A call that was made, and what is recorded of it.
  struct Repeated {
    EngineCall call;
    std::unique_ptr<RecordedWork> work;  ///< nullptr: it was made once
  };
  /// The same call as made before, or nullptr; then it is kept in place of that which was made least lately.
  [[nodiscard]] Repeated* known(const EngineCall& call);
  void issue(const EngineCall& call);
  void exchange(const EngineCall& call, std::size_t part);
  /// Two members: each combines both whole vectors.
  void exchange_whole(const EngineCall& call);
  /// Sends chunk by chunk. Takes a chunk after the handshake that follows it, while the next ones are in flight.
  ///   send, take  called with a chunk: put its copies on `copying_`, and what they have brought to use on `combining_`
  template <class Send, class Take>
  void in_turns(Operation operation, const std::vector<Chunk>& all, const Send& send, const Take& take);
  /// Symmetric vectors whose parts fit the scratch memory at once: one copy to each peer, and two halves to one of
  /// them.
  void run_halves(const EngineCall& call, const Chunk& whole);
  /// Symmetric vectors: results are copied to the peers' destinations.
  void run_direct(const EngineCall& call, const std::vector<Chunk>& all);
  /// Other vectors: results are copied to the peers' scratch memory, and from there to the destination two chunks
  /// later. The caller of this function takes the last chunk's result, after a handshake.
  void run_staged(const EngineCall& call, const std::vector<Chunk>& all);
  /// Copies the parts of a chunk to their owners while the previous chunk is reduced; then a handshake.
  void scatter_next(const EngineCall& call, const std::vector<Chunk>& all, std::size_t next);
  [[nodiscard]] EnginePiece piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const;
  /// Where `holder` keeps what comes from `other`.
  [[nodiscard]] std::byte* arrival(const Chunk& chunk, std::uint32_t holder, std::uint32_t other) const;
  /// Copies a peer's piece of the chunk to it.
  void send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance);
  void scatter(const EngineCall& call, const Chunk& chunk);
  void combine(const EngineCall& call, const Chunk& chunk);
  /// Reduces a piece of this member's vector and the pieces that have arrived from the others.
  void combine_piece(const EngineCall& call, const Chunk& chunk, const EnginePiece& mine);
  /// Copies this member's piece of the result to a peer.
  void return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance, Stream& stream);
  /// The same to all peers, after it has been reduced.
  void return_result(const EngineCall& call, const Chunk& chunk, Stream& stream);
  /// Copies the peers' pieces of the result, which have arrived, to the destination.
  void take(const EngineCall& call, const Chunk& chunk, Stream& stream);
  /// A handshake: all members have reached it, and their copies before `copied` are complete.
  void meet(Event& copied);
  /// The same for all copies so far.
  void meet_after_copies();
  /// Copies a chunk of this member's data to the scratch memory of its receivers.
  void send_pieces(const MovementPlan& plan, const Chunk& chunk);
  /// Copies the chunk that this member receives from scratch memory to the destination.
  void take_pieces(const MovementPlan& plan, const Chunk& chunk);
  void copy_own_piece(const MovementPlan& plan);
  /// What follows on the engines' streams comes after what the caller's has; and the other way round.
  void begin(Stream& caller);
  void end(Stream& caller);
  [[nodiscard]] LaunchOptions handshake_on(Stream& stream, Operation operation) const;

  Team& team_;
  const Context& context_;
  const CollectiveChannel& channel_;
  std::span<std::byte> scratch_;  ///< [slots, others, a chunk]
  std::unique_ptr<Stream> copying_, returning_, combining_, recording_;
  std::vector<Repeated> repeated_;  ///< the latest last
  std::unique_ptr<Event> called_, copied_, returned_, met_, combined_;
  static constexpr std::size_t most_arrivals = 4;
  std::array<std::unique_ptr<Event>, most_arrivals>
      arrived_;  ///< of chunks that are only moved: all have met with each
};

}  // namespace beeline::detail
