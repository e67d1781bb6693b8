// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

#include <array>

namespace beeline::bench {

static_assert(allreduce_bus_factor(1) == 0 && allreduce_bus_factor(2) == 1 && allreduce_bus_factor(4) == 1.5);
static_assert(pieces_bus_factor(1) == 0 && pieces_bus_factor(2) == 0.5 && pieces_bus_factor(4) == 0.75);

namespace {

/// Starts the operation with pieces of equal length, which shows what individual lengths cost compared with `alltoall`.
void start_varied(Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
  const auto ranks = static_cast<std::size_t>(collectives.team().size());
  std::array<std::size_t, max_ranks> counts, offsets;
  for (std::size_t rank = 0; rank < ranks; ++rank) counts[rank] = vectors.count, offsets[rank] = rank * vectors.count;
  const std::span<const std::size_t> all_counts(counts.data(), ranks), all_offsets(offsets.data(), ranks);
  collectives.alltoallv_on_stream(vectors.destination, vectors.source,
                                  {all_counts, all_offsets, all_counts, all_offsets}, vectors.type, call);
}

}  // namespace

void start(const CollectiveShape& operation, Collectives& collectives, const VectorPair& vectors,
           const CollectiveCall& call) {
  if (operation.varies) return start_varied(collectives, vectors, call);
  collectives.call_on_stream({.operation = operation.operation,
                              .element = {vectors.type},
                              .root = static_cast<std::uint32_t>(measured_root),
                              .count = vectors.count},
                             vectors.destination, vectors.source, call);
}

RankPart part_of(const CollectiveShape& operation, std::uint32_t rank, std::uint32_t ranks) {
  const bool is_root = rank == measured_root, collects = !operation.reduces && has_pieces(operation.destination);
  return {static_cast<std::uint32_t>(parts_of(operation.source, ranks, is_root)),
          static_cast<std::uint32_t>(parts_of(operation.destination, ranks, is_root)),
          {.ranks = operation.reduces ? ranks : 1,
           .next_rank = collects ? 1u : 0u,
           .source_piece = has_pieces(operation.source) ? rank : 0}};
}

double bus_factor(const CollectiveShape& operation, int ranks) {
  if (operation.operation == Operation::allreduce) return allreduce_bus_factor(ranks);
  return operation.any_pieces() ? pieces_bus_factor(ranks) : 1;
}

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

}  // namespace beeline::bench
