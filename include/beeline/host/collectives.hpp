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

/// Sizes of a channel, the same on all ranks. 0: chosen by the kind and number of ranks.
struct CollectiveOptions {
  unsigned sessions = 0;          ///< largest number of blocks of a call
  std::size_t packet_bytes = 0;   ///< payload of a member's packets in a round: at least 32; LL128 has twice as much
  std::size_t staging_bytes = 0;  ///< size of each of a session's two areas for vectors that are not symmetric
  /// Symmetric memory for large calls by copy engines, a multiple of 256 bytes. If not set: for a channel of a world
  /// whose ranks have one GPU each, an eighth of the heap (less if the heap is full; at most 256 MB for each other
  /// rank, since copy engines cannot use more); for other channels none. If 0: none; then `automatic` never chooses
  /// copy engines, and `copy_engine` uses the staging memory.
  std::optional<std::size_t> engine_bytes = std::nullopt;
  std::uint64_t first_round = 0;  ///< number of the first round, for tests

  bool operator==(const CollectiveOptions&) const = default;
};

/// How one call is to be made.
struct CollectiveCall {
  Stream* stream = nullptr;  ///< nullptr: in calls `..._on_stream` the rank's default stream; other calls then block
  Algorithm algorithm = Algorithm::automatic;  ///< the same on all ranks
  unsigned blocks = 0;  ///< the same on all ranks; 0: by size; if set, `automatic` never chooses copy engines
  /// If true, the caller asserts that the vectors are symmetric buffers: they have the same offset in the heaps of all
  /// members. In calls that only move data, the assertion concerns the destinations only. All ranks pass the same
  /// value. Copy engines then write results directly to their destinations, and `automatic` chooses copy engines if
  /// that is faster. If the assertion is false and copy engines are used, the team is aborted with an error; on GPUs
  /// they have then written to the addresses of the assumed symmetric buffers. All other methods detect whether vectors
  /// are symmetric.
  bool symmetric = false;
  /// If set, reductions by `two_shot`, reduce-scatter by `read` and data movement by `peer` access vectors in ordinary
  /// memory directly, as soon as all members have mapped them. Set on all members or on none.
  SegmentMappings* mappings = nullptr;
  /// Whether other kernels of this rank run beside the call, as where a program communicates while it computes. The
  /// grid of a long call on a GPU then takes multiprocessors only when all members have reached the call; up to then
  /// one warp waits, for at most 50 ms. Costs one more launch. Each member chooses for itself.
  bool overlapped = false;
};

/// Options of one barrier.
struct BarrierCall {
  Stream* stream = nullptr;                    ///< as in `CollectiveCall`
  Algorithm algorithm = Algorithm::automatic;  ///< the same on all ranks
};

/// Why the members of the team cannot use `algorithm`, the same on all of them; empty if they can. Collective at a
/// team's first call. The registry (core/registry.hpp) says which operations have the algorithm.
[[nodiscard]] std::string reason_against(Team& team, Algorithm algorithm);

/// Pieces whose lengths differ from peer to peer, in elements, as in MPI_Alltoallv. Each span has [members] values,
/// which have been read when the function returns.
struct PieceSpans {
  std::span<const std::size_t> send_counts, send_offsets, receive_counts, receive_offsets;
};

namespace detail {

/// Pieces with all counts and offsets multiplied by `factor`: in elements that are smaller by this factor.
class ScaledPieces {
 public:
  ScaledPieces(const PieceSpans& pieces, std::size_t factor);
  [[nodiscard]] PieceSpans spans() const { return {columns_[0], columns_[1], columns_[2], columns_[3]}; }

 private:
  std::vector<std::size_t> columns_[4];
};

}  // namespace detail

/// A channel for the collectives of a team, and the host's calls on it. All members make the calls on one channel in
/// the same order, one after the other: on one stream, or on streams that wait for each other. Concurrent calls, as of
/// several threads, need one object each, and do not wait for each other. While a thread makes a call on an object or
/// waits in it, calls of other threads on the same object are refused with invalid_argument; the error names both
/// calls. If the calls of two members differ, the team is aborted with an error that names both calls, about a
/// millisecond after the members have begun to wait for each other. A call with 0 elements is a barrier.
class Collectives {
 public:
  /// Collective over the team, which must outlive this object; other ranks neither call it nor need memory for it.
  /// Throws invalid_argument if members pass different options, no_resource if the heap is full.
  explicit Collectives(Team& team, const CollectiveOptions& options = {});
  /// Collective. All calls must have ended, since the memory is freed.
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// The channel for kernels (collectives/*.hpp); pass it by value. While a kernel uses it, make no other call on it.
  [[nodiscard]] const CollectiveChannel& channel() const;
  /// The channel's team. Launch kernels that use the channel with this team.
  [[nodiscard]] Team& team() const;

  // --- Vectors that know their lengths --------------------------------------------------------------------------
  //
  // A vector is a SymmetricArray, a std::span, or an object from which a std::span can be made. A call without a stream
  // blocks until it has ended, and throws its errors; it comes after the earlier work of the default stream. A call
  // with a stream is asynchronous, in the order of the stream; an Event that is recorded after the call is complete
  // when the call has ended. All else is the same as in the corresponding call `..._on_stream` below. The calls throw
  // invalid_argument, before anything is touched, if the length of a vector does not match the other vectors and the
  // number of members. Elements that are only moved may have any trivially copyable type.

  /// Every member gets the combination of all members' vectors. destination, source [count].
  template <detail::Vector To, detail::Vector From>
  void allreduce(To&& destination, From&& source, Reduction reduction = Reduction::sum,
                 const CollectiveCall& call = {}) {
    run<Operation::allreduce>(destination, source, call, reduction);
  }
  /// All-reduce in place: `vector` [count] is source and destination.
  template <detail::Vector Both>
  void allreduce(Both&& vector, Reduction reduction = Reduction::sum, const CollectiveCall& call = {}) {
    allreduce(vector, vector, reduction, call);
  }
  /// The root gets the combination of all members' vectors. destination [count] at the root; source [count].
  template <detail::Vector To, detail::Vector From>
  void reduce(To&& destination, From&& source, Reduction reduction, int root, const CollectiveCall& call = {}) {
    run<Operation::reduce>(destination, source, call, reduction, root);
  }
  /// Member r gets part r of the combination of all members' vectors. destination [count]; source [members, count].
  template <detail::Vector To, detail::Vector From>
  void reduce_scatter(To&& destination, From&& source, Reduction reduction = Reduction::sum,
                      const CollectiveCall& call = {}) {
    run<Operation::reduce_scatter>(destination, source, call, reduction);
  }
  /// All members get the root's vector. destination [count]; source [count] at the root.
  template <detail::Vector To, detail::Vector From>
  void broadcast(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::broadcast>(destination, source, call, {}, root);
  }
  /// Broadcast in place: `vector` [count] is source and destination.
  template <detail::Vector Both>
  void broadcast(Both&& vector, int root, const CollectiveCall& call = {}) {
    broadcast(vector, vector, root, call);
  }
  /// Member r gets part r of the root's vector. destination [count]; source [members, count] at the root.
  template <detail::Vector To, detail::Vector From>
  void scatter(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::scatter>(destination, source, call, {}, root);
  }
  /// The root gets all vectors, in the order of ranks. destination [members, count] at the root; source [count].
  template <detail::Vector To, detail::Vector From>
  void gather(To&& destination, From&& source, int root, const CollectiveCall& call = {}) {
    run<Operation::gather>(destination, source, call, {}, root);
  }
  /// All members get all vectors, in the order of ranks. destination [members, count]; source [count].
  template <detail::Vector To, detail::Vector From>
  void allgather(To&& destination, From&& source, const CollectiveCall& call = {}) {
    run<Operation::allgather>(destination, source, call);
  }
  /// Part j of member i's vector becomes part i of member j's vector. destination, source [members, count].
  template <detail::Vector To, detail::Vector From>
  void alltoall(To&& destination, From&& source, const CollectiveCall& call = {}) {
    run<Operation::alltoall>(destination, source, call);
  }
  /// All-to-all with pieces of any lengths and positions in the vectors.
  template <detail::Vector To, detail::Vector From>
  void alltoallv(To&& destination, From&& source, const PieceSpans& pieces, const CollectiveCall& call = {}) {
    const auto vectors = detail::vectors_of(destination, source);
    detail::require_pieces("destination", vectors.to.size(), pieces.receive_counts, pieces.receive_offsets);
    detail::require_pieces("source", vectors.from.size(), pieces.send_counts, pieces.send_offsets);
    const detail::ScaledPieces scaled(pieces, vectors.words);
    detail::make_call(team(), call, [&](const CollectiveCall& how) {
      alltoallv_on_stream(vectors.to.data(), vectors.from.data(), scaled.spans(), vectors.type(), how);
    });
  }

  /// Blocks until all members have reached this call, each after the earlier work of its default stream. With
  /// `call.stream` it returns at once, and later work of that stream waits until the streams of all members have
  /// reached the call.
  void barrier(const BarrierCall& call = {}) {
    detail::make_call(team(), call, [&](const BarrierCall& how) { barrier_on_stream(how); });
  }

  // --- On streams, untyped ----------------------------------------------------------------------------------------

  /// All-reduce of `count` elements, on a stream; asynchronous, in its order, as one kernel.
  ///   source       [count], aligned to its elements, unchanged until the stream has passed the call
  ///   destination  [count], aligned to its elements; may be `source`, otherwise the two must not overlap
  /// Vectors may be in any memory that this rank's kernels reach. Algorithms that access the vectors of other ranks use
  /// symmetric buffers directly, and stage others.
  /// Throws invalid_argument, before anything is touched, for a count, type, reduction, algorithm, alignment or number
  /// of blocks that is not supported. `World::synchronize` throws failures of the call itself.
  void allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                           Reduction reduction, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::allreduce, count, type, -1, reduction), destination, source, call);
  }

  /// Starts the collective `what.operation`: any operation but all-to-all-v and the barrier.
  ///   what  operation, element type, count; reduction and root if the operation has them
  void call_on_stream(const CallDescription& what, void* destination, const void* source,
                      const CollectiveCall& call = {});

  /// Combines `count` elements of all ranks on the root. Otherwise the same as `allreduce_on_stream`.
  ///   destination  [count] at the root; may be `source`; ignored at other ranks
  ///   call         with one of the algorithms automatic, ll, two_shot, read, gather, alltoall_gather, tree,
  ///                across_nodes, two_shot_across_nodes
  void reduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type, Reduction reduction,
                        int root, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::reduce, count, type, root, reduction), destination, source, call);
  }
  /// Combines part r of all ranks' vectors on rank r. Otherwise the same as `allreduce_on_stream`.
  ///   source       [members, count]
  ///   destination  [count]; may be this rank's part of `source`
  ///   call         with one of the algorithms automatic, ll, read, peer, bulk, across_nodes
  void reduce_scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                Reduction reduction, const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::reduce_scatter, count, type, -1, reduction), destination, source, call);
  }

  /// The algorithm and the number of blocks that a call with the options `call` would use.
  ///   operation  any but all-to-all-v and the barrier
  ///   count      elements of the vector, or of the piece from one member to another
  /// Throws the same errors as the call.
  [[nodiscard]] CollectiveCall choice(Operation operation, std::size_t count, ElementType type,
                                      const CollectiveCall& call = {}) const;

  // --- Moving data ----------------------------------------------------------------------------------------------
  //
  // These calls are asynchronous, in the order of a stream. Vectors are aligned to their elements, may be in any memory
  // that this rank's kernels reach, and overlap only as stated. Algorithms:
  //   - ll: any memory, the lowest latency; the only algorithm in teams with GPU ranks and host ranks;
  //   - ll128: like ll, for all-gather and all-to-all between GPUs, with half the bytes;
  //   - peer, bulk: one kernel, which stores directly into destinations in the heaps, and stages other destinations in
  //   the channel's memory; with peer, members read data of a single root directly from the root's heap, into any
  //   memory;
  //   - copy_engine (all but gather and all-to-all-v): copies between small kernels, through the channel's memory or,
  //     with `CollectiveCall::symmetric`, directly to the destinations.
  // These calls throw invalid_argument, before anything is touched, for arguments that are not supported; unavailable
  // for an algorithm that these ranks or this destination do not permit. Source: MPI 4.0, chapter 6.

  /// Copies the root's `count` elements to all members.
  ///   source  [count] at the root; may be its `destination`; ignored at other members
  ///   destination  [count]
  void broadcast_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                           const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::broadcast, count, type, root), destination, source, call);
  }
  /// Copies part r of the root's vector to member r.
  ///   source  [members, count] at the root; ignored at other members
  ///   destination  [count]; the root's may be its part of `source`
  void scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                         const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::scatter, count, type, root), destination, source, call);
  }
  /// Copies all vectors to the root, in the order of ranks.
  ///   source  [count]; the root's may be its part of `destination`
  ///   destination  [members, count] at the root; ignored at other members
  void gather_on_stream(void* destination, const void* source, std::size_t count, ElementType type, int root,
                        const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::gather, count, type, root), destination, source, call);
  }
  /// Copies all vectors to all members, in the order of ranks.
  ///   source  [count]; may be this member's part of `destination`
  ///   destination  [members, count]
  void allgather_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                           const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::allgather, count, type), destination, source, call);
  }
  /// Copies part j of member i's vector to part i of member j's vector.
  ///   source, destination  [members, count]; they must not overlap
  void alltoall_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                          const CollectiveCall& call = {}) {
    call_on_stream(call_of(Operation::alltoall, count, type), destination, source, call);
  }
  /// All-to-all with pieces of any lengths and positions. The length that a member expects from another equals the
  /// length that the other sends to it. The members first compare the lengths: if the two lengths of a piece differ,
  /// the piece is not moved (other pieces may be), and the team is aborted with an error that names both ranks and both
  /// lengths.
  void alltoallv_on_stream(void* destination, const void* source, const PieceSpans& pieces, ElementType type,
                           const CollectiveCall& call = {});
  /// Holds later work of the stream until the streams of all members have reached this call; the effects of their
  /// earlier work are then visible. One kernel. Throws invalid_argument for an algorithm that barriers do not have.
  /// Source: seed 000, 6.7 (barrier as a kernel between two kernels).
  void barrier_on_stream(const BarrierCall& call = {});

  /// How the vectors of the host's last call (barriers excepted) travelled to the other members. The call must have
  /// ended: synchronize its stream first. The result is the same on all members. Some algorithms decide during the call
  /// whether they can access vectors directly (two_shot; read in a reduce-scatter; peer and bulk in calls that move
  /// data); their decision is read from the channel's memory, blocking. copy_engine accesses vectors directly if
  /// `CollectiveCall::symmetric` is set. Algorithms in packets give `packets`; other reductions are staged.
  [[nodiscard]] Transfer last_transfer() const;
  /// The algorithm of the host's last call; `automatic` before the first call.
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
    detail::make_call(team(), call, [&](const CollectiveCall& how) {
      call_on_stream(call_of(operation, vectors.count * vectors.words, vectors.type(), root, reduction),
                     vectors.to.data(), vectors.from.data(), how);
    });
  }
  detail::TeamOwned<Implementation> implementation_;
};

}  // namespace beeline
