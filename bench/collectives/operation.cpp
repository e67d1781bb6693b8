// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

#include <array>

namespace beeline::bench {

static_assert(allreduce_bus_factor(1) == 0 && allreduce_bus_factor(2) == 1 && allreduce_bus_factor(4) == 1.5);
static_assert(pieces_bus_factor(1) == 0 && pieces_bus_factor(2) == 0.5 && pieces_bus_factor(4) == 0.75);

namespace {

constexpr std::uint32_t root = measured_root;

// --- Operations that reduce -----------------------------------------------------------------------------------------

MeasuredOperation allreduce() {
  return {.kind = Operation::allreduce,
          .has_pieces = false,
          .bus_factor = allreduce_bus_factor,
          .part =
              [](std::uint32_t, std::uint32_t ranks) {
                return RankPart{1, 1, {.ranks = ranks}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.allreduce_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                                Reduction::sum, call);
              },
          .in_kernel = allreduce_in_kernel};
}

MeasuredOperation reduce() {
  return {.kind = Operation::reduce,
          .has_pieces = false,
          .bus_factor = rooted_bus_factor,
          .part =
              [](std::uint32_t rank, std::uint32_t ranks) {
                return RankPart{1, rank == root ? 1u : 0u, {.ranks = ranks}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.reduce_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                             Reduction::sum, measured_root, call);
              },
          .in_kernel = nullptr};
}

MeasuredOperation reduce_scatter() {
  return {.kind = Operation::reduce_scatter,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part =
              [](std::uint32_t rank, std::uint32_t ranks) {
                return RankPart{ranks, 1, {.ranks = ranks, .source_piece = rank}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.reduce_scatter_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                                     Reduction::sum, call);
              },
          .in_kernel = nullptr};
}

// --- Operations that move -------------------------------------------------------------------------------------------

MeasuredOperation broadcast() {
  return {.kind = Operation::broadcast,
          .has_pieces = false,
          .bus_factor = rooted_bus_factor,
          .part =
              [](std::uint32_t rank, std::uint32_t) {
                return RankPart{rank == root ? 1u : 0u, 1, {.first = root}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.broadcast_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                                measured_root, call);
              },
          .in_kernel = nullptr};
}

MeasuredOperation scatter() {
  return {.kind = Operation::scatter,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part =
              [](std::uint32_t rank, std::uint32_t ranks) {
                return RankPart{rank == root ? ranks : 0, 1, {.first = root, .source_piece = rank}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.scatter_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                              measured_root, call);
              },
          .in_kernel = nullptr};
}

MeasuredOperation gather() {
  return {.kind = Operation::gather,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part =
              [](std::uint32_t rank, std::uint32_t ranks) {
                return RankPart{1, rank == root ? ranks : 0, {.next_rank = 1}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.gather_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                             measured_root, call);
              },
          .in_kernel = nullptr};
}

MeasuredOperation allgather() {
  return {.kind = Operation::allgather,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part =
              [](std::uint32_t, std::uint32_t ranks) {
                return RankPart{1, ranks, {.next_rank = 1}};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.allgather_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type, call);
              },
          .in_kernel = allgather_in_kernel};
}

RankPart alltoall_part(std::uint32_t rank, std::uint32_t ranks) {
  return {ranks, ranks, {.next_rank = 1, .source_piece = rank}};
}

MeasuredOperation alltoall() {
  return {.kind = Operation::alltoall,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part = alltoall_part,
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.alltoall_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type, call);
              },
          .in_kernel = alltoall_in_kernel};
}

/// With pieces of one length: what the lengths of their own cost beside `alltoall`.
void start_alltoallv(Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
  const auto ranks = static_cast<std::size_t>(collectives.team().size());
  std::array<std::size_t, max_ranks> counts, offsets;
  for (std::size_t rank = 0; rank < ranks; ++rank) counts[rank] = vectors.count, offsets[rank] = rank * vectors.count;
  const std::span<const std::size_t> all_counts(counts.data(), ranks), all_offsets(offsets.data(), ranks);
  collectives.alltoallv_on_stream(vectors.destination, vectors.source,
                                  {all_counts, all_offsets, all_counts, all_offsets}, vectors.type, call);
}

MeasuredOperation alltoallv() {
  return {.kind = Operation::alltoallv,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part = alltoall_part,
          .start = start_alltoallv,
          .in_kernel = nullptr};
}

}  // namespace

std::vector<MeasuredAlgorithm> measured_algorithms(Operation operation) {
  std::vector<MeasuredAlgorithm> all = {{.algorithm = Algorithm::automatic}};
  for (const MethodRow& row : method_rows)
    if (row.operation == operation && row.is_by(Control::stream)) all.push_back({row.algorithm, row.sizes});
  if (!has_algorithm(operation, Algorithm::copy_engine, Control::stream)) return all;
  constexpr ByteRange where_it_matters{std::size_t{32} << 20};
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::copy_engine})
    all.push_back({algorithm, where_it_matters, true});
  return all;
}

const std::vector<MeasuredOperation>& measured_operations() {
  static const std::vector<MeasuredOperation> all = {allreduce(), broadcast(),      scatter(),  gather(),   allgather(),
                                                     reduce(),    reduce_scatter(), alltoall(), alltoallv()};
  return all;
}

}  // namespace beeline::bench
