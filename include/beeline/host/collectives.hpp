// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collectives of a team: the memory that they need, the channel for kernels, and the calls on streams.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/operation.hpp"
#include "beeline/collectives/reduction.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/core/transfer.hpp"
#include "beeline/host/impl/typed_vectors.hpp"
#include "beeline/host/segment_mappings.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// Sizes of a channel. All ranks give the same; 0: by the kind and number of ranks.
struct CollectiveOptions {
  unsigned sessions = 0;          ///< blocks that may take part in a call
  std::size_t packet_bytes = 0;   ///< payload of a round of packets, of each session from each rank: at least 32; in
                                  ///< packets of 128 bytes, twice as much
  std::size_t staging_bytes = 0;  ///< of each session, for vectors that are not symmetric, twice
  /// Symmetric memory through which copy engines make large calls, in multiples of 256. Not set: for a channel of
  /// the world whose ranks have a GPU each, an eighth of the heap, at most what the engines can use (256 MB for each of
  /// the other ranks), less where the heap is full; for any other channel none. 0: none; then `automatic` takes no copy
  /// engines, and `copy_engine` goes through the staging.
  std::optional<std::size_t> engine_bytes = std::nullopt;
  std::uint64_t first_round = 0;  ///< where rounds start to count

  bool operator==(const CollectiveOptions&) const = default;
};

/// How one call is to be made.
struct CollectiveCall {
  Stream* stream = nullptr;                    ///< nullptr: the rank's default stream
  Algorithm algorithm = Algorithm::automatic;  ///< the same on all ranks
  unsigned blocks = 0;  ///< the same on all ranks; 0: by size. Engines have none: with blocks, `automatic` takes others
  /// The caller asserts, on all ranks or none, that the vectors are symmetric: they lie at the same offset of all
  /// members' heaps (of calls that only move data, the destinations do). Then copy engines write results to their
  /// place without a copy through the channel's memory, and `automatic` takes engines where that is quicker. If the
  /// assertion is false and engines are taken, the team ends with an error; on GPUs they have then written to where
  /// symmetric vectors would lie. All other calls detect whether vectors are symmetric.
  bool symmetric = false;
  /// On all members or none: vectors in ordinary memory are used where they lie, once all have mapped them, in
  /// calls of more than packets carry that kernels make.
  SegmentMappings* mappings = nullptr;
};

/// The same of a barrier.
struct BarrierCall {
  Stream* stream = nullptr;                    ///< nullptr: the rank's default stream
  Algorithm algorithm = Algorithm::automatic;  ///< the same on all ranks
};

/// Collective at a team's first call. Why its members cannot use `algorithm`, the same on all; empty if they can. Which
/// operations have it, the registry says (core/registry.hpp).
[[nodiscard]] std::string reason_against(Team& team, Algorithm algorithm);

/// Pieces whose lengths differ from peer to peer, in elements, as in MPI_Alltoallv: [members] each. Read when the call
/// is made.
struct PieceSpans {
  std::span<const std::size_t> send_counts, send_offsets, receive_counts, receive_offsets;
};

namespace detail {

/// Pieces in elements of another size.
class ScaledPieces {
 public:
  ScaledPieces(const PieceSpans& pieces, std::size_t factor);
  [[nodiscard]] PieceSpans spans() const { return {columns_[0], columns_[1], columns_[2], columns_[3]}; }

 private:
  std::vector<std::size_t> columns_[4];
};

}  // namespace detail

/// A channel for the collectives of a team, and what a host asks of it. Calls on one channel are made
/// in the same order by all members, one after the other: on one stream, or on streams that wait for each other. Calls
/// that are to go on at the same time use several objects. Members whose calls differ end with an error that names both
/// calls, a millisecond or so after they wait for each other. A call of no elements is a barrier.
class Collectives {
 public:
  /// Collective over the team, which outlives this: other ranks have no part in it, nor memory for it.
  /// Throws invalid_argument when members give different options, no_resource when the heap is full.
  explicit Collectives(Team& team, const CollectiveOptions& options = {});
  /// Collective. The calls must be over: the memory is freed.
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// For kernels (collectives/*.hpp), by value. While a kernel uses it, no other call does.
  [[nodiscard]] const CollectiveChannel& channel() const;
  /// Its members: kernels that use the channel are launched with it.
  [[nodiscard]] Team& team() const;

  // --- Vectors that know their lengths --------------------------------------------------------------------------
  //
  // A vector is a SymmetricArray, a std::span, or what a std::span is made from. A call without a stream blocks until
  // it is over, and throws what it ended with; with one it is asynchronous, in its order. All else is as of the call
  // `..._on_stream` below. Throw invalid_argument, before anything is touched, where a vector is not as long as the
  // others and the number of members ask for. Elements that are only moved are of any trivially copyable type.

  /// Every member gets the combination of all members' vectors. destination, source [count].
  template <detail::Vector To, detail::Vector From>
  void allreduce(To&& destination, From&& source, Reduction reduction = Reduction::sum,
                 const CollectiveCall& call = {}) {
    run<Operation::allreduce>(destination, source, call, reduction);
  }
  /// The same in place.
  template <detail::Vector Both>
  void allreduce(Both&& vector, Reduction reduction = Reduction::sum, const CollectiveCall& call = {}) {
    allreduce(vector, vector, reduction, call);
  }
  /// The root gets the combination. destination [count] the root's; source [count].
  template <detail::Vector To, detail::Vector From>
  void reduce(To&& destination, From&& source, Reduction reduction, int root, const CollectiveCall& call = {}) {
    run<Operation::reduce>(destination, source, call, reduction, root);
  }
  /// Member r gets part r of the combination. destination [count]; source [members, count].
  template <detail::Vector To, detail::Vector From>
  void reduce_scatter(To&& destination, From&& source, Reduction reduction = Reduction::sum,
                      const CollectiveCall& call = {}) {
    run<Operation::reduce_scatter>(destination, source, call, reduction);
  }
  /// All get the root's vector. destination [count]; source [count] the root's.
  template <detail::Vector To, detail::Vector From>
  void broadcast(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::broadcast>(destination, source, call, {}, root);
  }
  /// The same in place.
  template <detail::Vector Both>
  void broadcast(Both&& vector, int root, const CollectiveCall& call = {}) {
    broadcast(vector, vector, root, call);
  }
  /// Member r gets part r of the root's vector. destination [count]; source [members, count] the root's.
  template <detail::Vector To, detail::Vector From>
  void scatter(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::scatter>(destination, source, call, {}, root);
  }
  /// The root gets all vectors, by rank. destination [members, count] the root's; source [count].
  template <detail::Vector To, detail::Vector From>
  void gather(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::gather>(destination, source, call, {}, root);
  }
  /// All get all vectors, by rank. destination [members, count]; source [count].
  template <detail::Vector To, detail::Vector From>
  void allgather(To&& destination, From&& source, const CollectiveCall& call = {}) {
    run<Operation::allgather>(destination, source, call);
  }
  /// Part j of member i's vector becomes part i of member j's. destination, source [members, count].
  template <detail::Vector To, detail::Vector From>
  void alltoall(To&& destination, From&& source, const CollectiveCall& call = {}) {
    run<Operation::alltoall>(destination, source, call);
  }
  /// The same with pieces of any lengths at any places in the vectors.
  template <detail::Vector To, detail::Vector From>
  void alltoallv(To&& destination, From&& source, const PieceSpans& pieces, const CollectiveCall& call = {}) {
    const auto vectors = detail::vectors_of(destination, source);
    detail::require_pieces("destination", vectors.to.size(), pieces.receive_counts, pieces.receive_offsets);
    detail::require_pieces("source", vectors.from.size(), pieces.send_counts, pieces.send_offsets);
    const detail::ScaledPieces scaled(pieces, vectors.words);
    detail::make_call(team(), call.stream, [&] {
      alltoallv_on_stream(vectors.to.data(), vectors.from.data(), scaled.spans(), vectors.type(), call);
    });
  }

  /// Blocks until the members' default streams have all come here; on another stream, holds its later work until then.
  void barrier(const BarrierCall& call = {}) {
    detail::make_call(team(), call.stream, [&] { barrier_on_stream(call); });
  }

  // --- On streams, untyped ----------------------------------------------------------------------------------------

  /// All-reduce of `count` elements, on a stream; asynchronous, in its order, as one kernel.
  ///   source       [count], aligned to its elements, unchanged until the stream has passed the call
  ///   destination  [count], the same; may be `source`, otherwise the two do not overlap
  /// Memory is whatever this rank's kernels reach; in the symmetric heap, at the same place on all ranks, it is used as
  /// it is also by algorithms that read and write it from other ranks.
  /// Throws invalid_argument, before anything is touched, for a count, type, reduction, algorithm, alignment or number
  /// of blocks that does not work; failures of the call itself come with `World::synchronize`.
  void allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                           Reduction reduction, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::allreduce, count, type, -1, reduction), destination, source, call);
  }

  /// The call of `what.operation`, one of those of this section but all-to-all-v and the barrier.
  ///   what  operation, element type, count; reduction and root of an operation that has them
  void call_on_stream(const CallDescription& what, void* destination, const void* source,
                      const CollectiveCall& call = {});

  /// Combines `count` elements of all ranks on the root, as `allreduce_on_stream`.
  ///   destination  [count] the root's; may be `source`; of others not looked at
  ///   call         ll, two_shot, read, gather, alltoall_gather or tree
  void reduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type, Reduction reduction,
                        int root, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::reduce, count, type, root, reduction), destination, source, call);
  }
  /// Combines part r of all ranks' vectors on rank r, as `allreduce_on_stream`.
  ///   source       [members, count]
  ///   destination  [count]; may be this rank's part of `source`
  ///   call         ll, read, peer or bulk
  void reduce_scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                Reduction reduction, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::reduce_scatter, count, type, -1, reduction), destination, source, call);
  }

  /// The algorithm and the number of blocks that `call` takes for an operation.
  ///   operation  all but all-to-all-v and the barrier
  ///   count      elements of the vector, or of the piece from one to another
  /// Throws as the call would.
  [[nodiscard]] CollectiveCall choice(Operation operation, std::size_t count, ElementType type,
                                      const CollectiveCall& call = {}) const;

  // --- Moving data ----------------------------------------------------------------------------------------------
  //
  // On a stream; asynchronous, in its order. Vectors are aligned to their elements, lie in whatever memory this rank's
  // kernels reach, and overlap only as said. Algorithms: ll (any memory, the lowest latency, the only one in teams
  // of both kinds of rank); ll128 (all-gather and all-to-all: the same between GPUs, in half the bytes); peer and
  // bulk, one kernel, which store where the data is to lie if that is in the heaps, and go through the channel's memory
  // otherwise (by peer, the members read what one root sends from its heap, into any memory); copy_engine (all
  // but gather and all-to-all-v): copies between small kernels, through the channel's memory, or, with
  // `CollectiveCall::symmetric`, to where the data is to lie. Throw invalid_argument, before anything is touched, for
  // arguments that do not work, unavailable for an algorithm that these ranks or this destination do not allow. Source:
  // MPI 4.0, chapter 6.

  /// Copies the root's `count` elements to all.
  ///   source  [count] the root's; may be its `destination`; of others not looked at
  ///   destination  [count]
  void broadcast_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                           const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::broadcast, count, type, root), destination, source, call);
  }
  /// Copies part r of the root's vector to member r.
  ///   source  [members, count] the root's; of others not looked at
  ///   destination  [count]; the root's may be its part of `source`
  void scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                         const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::scatter, count, type, root), destination, source, call);
  }
  /// Copies all vectors to the root, by rank.
  ///   source  [count]; the root's may be its part of `destination`
  ///   destination  [members, count] the root's; of others not looked at
  void gather_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                        const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::gather, count, type, root), destination, source, call);
  }
  /// Copies all vectors to all, by rank.
  ///   source  [count]; may be this member's part of `destination`
  ///   destination  [members, count]
  void allgather_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                           const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::allgather, count, type), destination, source, call);
  }
  /// Copies part j of member i's vector to part i of member j's.
  ///   source, destination  [members, count]; they do not overlap
  void alltoall_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                          const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::alltoall, count, type), destination, source, call);
  }
  /// The same with pieces of any lengths at any places. What a member receives from another is as long as what that one
  /// sends to it. The members compare that first: where lengths differ, that piece is not moved (others may be), and
  /// the team ends with an error that names both ranks and both lengths.
  void alltoallv_on_stream(void* destination, const void* source, const PieceSpans& pieces, ElementType type,
                           const CollectiveCall& call = {});
  /// Holds later work of the stream until all members' streams have come here; what their earlier work did is visible
  /// to it. One kernel. Throws invalid_argument for an algorithm that does not exist.
  /// Source: seed 000, 6.7 (barrier as a kernel between two kernels).
  void barrier_on_stream(const BarrierCall& call = {});

  /// How the vectors of the last call that a host made (barriers apart) got to the other members; that call is over:
  /// its stream was synchronised. The same on all members. Algorithms that use vectors where they lie (two_shot; read
  /// of a reduce-scatter; peer, bulk of what only moves) find out in the call whether they can, and the answer is read
  /// from the channel's memory, blocking; copy_engine does with `CollectiveCall::symmetric`; reductions by all other
  /// names are staged.
  [[nodiscard]] Transfer last_transfer() const;
  /// What that call was made by; `automatic`: there was none yet.
  [[nodiscard]] Algorithm last_algorithm() const;

 private:
  class Implementation;
  [[nodiscard]] static CallDescription call_of(Operation operation, std::size_t count, ElementType type, int root = -1,
                                               Reduction reduction = Reduction::sum) {
    return {.operation = operation,
            .element = {type},
            .reduction = reduction,
            .root = static_cast<std::uint32_t>(root),
            .count = count};
  }
  template <Operation operation, detail::Vector To, detail::Vector From>
  void run(To& destination, From& source, const CollectiveCall& call, Reduction reduction = Reduction::sum,
           int root = -1) {
    const auto vectors = detail::vectors_of<operation>(destination, source, team().context(), root);
    detail::make_call(team(), call.stream, [&] {
      call_on_stream(call_of(operation, vectors.count * vectors.words, vectors.type(), root, reduction),
                     vectors.to.data(), vectors.from.data(), call);
    });
  }
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
