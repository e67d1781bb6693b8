// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

#include <array>

namespace beeline::bench {

static_assert(allreduce_bus_factor(1) == 0 && allreduce_bus_factor(2) == 1 && allreduce_bus_factor(4) == 1.5);
static_assert(pieces_bus_factor(1) == 0 && pieces_bus_factor(2) == 0.5 && pieces_bus_factor(4) == 0.75);

namespace {

/// A call by a function that takes one length, with what it takes besides.
template <auto function, auto... besides>
void start(Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
  (collectives.*function)(vectors.destination, vectors.source, vectors.count, vectors.type, besides..., call);
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

std::uint32_t pieces(Side side, std::uint32_t rank, std::uint32_t ranks) {
  if (is_of_root(side) && rank != measured_root) return 0;
  return has_pieces(side) ? ranks : 1;
}

}  // namespace

RankPart MeasuredOperation::part(std::uint32_t rank, std::uint32_t ranks) const {
  return {pieces(source, rank, ranks),
          pieces(destination, rank, ranks),
          {.ranks = reduces() ? ranks : 1,
           .next_rank = beeline::bench::has_pieces(destination) ? 1u : 0u,
           .source_piece = beeline::bench::has_pieces(source) ? rank : 0}};
}

double MeasuredOperation::bus_factor(int ranks) const {
  if (kind == Operation::allreduce) return allreduce_bus_factor(ranks);
  return has_pieces() ? pieces_bus_factor(ranks) : 1;
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

const std::vector<MeasuredOperation>& measured_operations() {
  static const std::vector<MeasuredOperation> all = {
      {Operation::allreduce, Side::vector, Side::vector, start<&Collectives::allreduce_on_stream, Reduction::sum>,
       allreduce_in_kernel},
      {Operation::broadcast, Side::roots_vector, Side::vector, start<&Collectives::broadcast_on_stream, measured_root>},
      {Operation::scatter, Side::roots_pieces, Side::vector, start<&Collectives::scatter_on_stream, measured_root>},
      {Operation::gather, Side::vector, Side::roots_pieces, start<&Collectives::gather_on_stream, measured_root>},
      {Operation::allgather, Side::vector, Side::pieces, start<&Collectives::allgather_on_stream>, allgather_in_kernel},
      {Operation::reduce, Side::vector, Side::roots_vector,
       start<&Collectives::reduce_on_stream, Reduction::sum, measured_root>},
      {Operation::reduce_scatter, Side::pieces, Side::vector,
       start<&Collectives::reduce_scatter_on_stream, Reduction::sum>},
      {Operation::alltoall, Side::pieces, Side::pieces, start<&Collectives::alltoall_on_stream>, alltoall_in_kernel},
      {Operation::alltoallv, Side::pieces, Side::pieces, start_alltoallv}};
  return all;
}

}  // namespace beeline::bench
