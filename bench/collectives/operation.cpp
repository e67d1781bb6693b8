// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

#include <array>

namespace beeline::bench {

static_assert(allreduce_bus_factor(1) == 0 && allreduce_bus_factor(2) == 1 && allreduce_bus_factor(4) == 1.5);
static_assert(pieces_bus_factor(1) == 0 && pieces_bus_factor(2) == 0.5 && pieces_bus_factor(4) == 0.75);

namespace {

constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20, everything = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t root = measured_root;

/// The same call with the caller's assertion, of the sizes for which it changes anything.
MeasuredAlgorithm asserted_symmetric(Algorithm algorithm) {
  return {.algorithm = algorithm, .least_bytes = 32 * mib, .symmetric = true};
}

// --- Operations that reduce -----------------------------------------------------------------------------------------

using Choice = std::optional<CollectiveCall>;

Choice not_told(const Collectives&, const VectorPair&, const CollectiveCall&) { return {}; }

MeasuredOperation allreduce() {
  return {
      .kind = CollectiveOperation::allreduce,
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
      .choice = [](const Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) -> Choice {
        return collectives.allreduce_choice(vectors.count, vectors.type, call);
      },
      .in_kernel = allreduce_in_kernel,
      .algorithms = {{.algorithm = Algorithm::automatic, .in_kernels = true},
                     {.algorithm = Algorithm::packets_one_shot, .most_bytes = 4 * mib, .in_kernels = true},
                     {.algorithm = Algorithm::packets_two_shot, .most_bytes = 64 * mib, .in_kernels = true},
                     {.algorithm = Algorithm::packets128_one_shot, .most_bytes = 4 * mib, .in_kernels = true},
                     {.algorithm = Algorithm::packets128_two_shot, .most_bytes = 64 * mib, .in_kernels = true},
                     {.algorithm = Algorithm::two_shot, .in_kernels = true},
                     {Algorithm::copy_engine, everything, mib},
                     asserted_symmetric(Algorithm::automatic),
                     asserted_symmetric(Algorithm::copy_engine),
                     {Algorithm::bulk, everything, mib},
                     {Algorithm::read, 16 * mib, 0, false},
                     {Algorithm::gather_cast, 16 * mib, 0, false},
                     {Algorithm::allgather, 16 * mib, 0, false},
                     {Algorithm::alltoall_allgather, 16 * mib, 0, false},
                     {Algorithm::tree, 16 * mib, 0, false}}};
}

MeasuredOperation reduce() {
  return {.kind = CollectiveOperation::reduce,
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
          .choice = not_told,
          .in_kernel = nullptr,
          .algorithms = {{Algorithm::automatic},
                         {Algorithm::packets, 16 * mib},
                         {Algorithm::two_shot},
                         {Algorithm::read, 256 * mib},
                         {Algorithm::gather, 256 * mib},
                         {Algorithm::alltoall_gather},
                         {Algorithm::tree, 16 * mib}}};
}

MeasuredOperation reduce_scatter() {
  return {.kind = CollectiveOperation::reduce_scatter,
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
          .choice = not_told,
          .in_kernel = nullptr,
          .algorithms = {{Algorithm::automatic},
                         {Algorithm::packets, 16 * mib},
                         {Algorithm::read},
                         {Algorithm::peer},
                         {Algorithm::bulk, everything, 64 * kib}}};
}

// --- Operations that move -------------------------------------------------------------------------------------------

template <CollectiveOperation operation>
Choice movement(const Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
  return collectives.movement_choice(operation, vectors.count * bytes_of(vectors.type), call);
}

const std::vector<MeasuredAlgorithm> by_kernels = {
    {Algorithm::automatic}, {Algorithm::packets, 16 * mib}, {Algorithm::peer}, {Algorithm::bulk, everything, 64 * kib}};

/// Of broadcast and scatter.
const std::vector<MeasuredAlgorithm> from_root = {{Algorithm::automatic},
                                                  {Algorithm::packets, 16 * mib},
                                                  {Algorithm::peer},
                                                  {Algorithm::bulk, everything, 64 * kib},
                                                  {Algorithm::copy_engine, everything, 64 * kib},
                                                  asserted_symmetric(Algorithm::automatic),
                                                  asserted_symmetric(Algorithm::copy_engine)};

/// Of all-gather and all-to-all.
const std::vector<MeasuredAlgorithm> by_kernels_and_engines = {
    {.algorithm = Algorithm::automatic, .in_kernels = true},
    {.algorithm = Algorithm::packets, .most_bytes = 16 * mib, .in_kernels = true},
    {.algorithm = Algorithm::packets128, .most_bytes = 64 * mib},
    {.algorithm = Algorithm::peer, .in_kernels = true},
    {Algorithm::bulk, everything, 64 * kib},
    {Algorithm::copy_engine, everything, 64 * kib},
    asserted_symmetric(Algorithm::automatic),
    asserted_symmetric(Algorithm::copy_engine)};

MeasuredOperation broadcast() {
  return {.kind = CollectiveOperation::broadcast,
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
          .choice = movement<CollectiveOperation::broadcast>,
          .in_kernel = nullptr,
          .algorithms = from_root};
}

MeasuredOperation scatter() {
  return {.kind = CollectiveOperation::scatter,
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
          .choice = movement<CollectiveOperation::scatter>,
          .in_kernel = nullptr,
          .algorithms = from_root};
}

MeasuredOperation gather() {
  return {.kind = CollectiveOperation::gather,
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
          .choice = movement<CollectiveOperation::gather>,
          .in_kernel = nullptr,
          .algorithms = by_kernels};
}

MeasuredOperation allgather() {
  return {.kind = CollectiveOperation::allgather,
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
          .choice = movement<CollectiveOperation::allgather>,
          .in_kernel = allgather_in_kernel,
          .algorithms = by_kernels_and_engines};
}

RankPart alltoall_part(std::uint32_t rank, std::uint32_t ranks) {
  return {ranks, ranks, {.next_rank = 1, .source_piece = rank}};
}

MeasuredOperation alltoall() {
  return {.kind = CollectiveOperation::alltoall,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part = alltoall_part,
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.alltoall_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type, call);
              },
          .choice = movement<CollectiveOperation::alltoall>,
          .in_kernel = alltoall_in_kernel,
          .algorithms = by_kernels_and_engines};
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
  return {.kind = CollectiveOperation::alltoallv,
          .has_pieces = true,
          .bus_factor = pieces_bus_factor,
          .part = alltoall_part,
          .start = start_alltoallv,
          .choice = not_told,
          .in_kernel = nullptr,
          .algorithms = by_kernels};
}

}  // namespace

const std::vector<MeasuredOperation>& measured_operations() {
  static const std::vector<MeasuredOperation> all = {allreduce(), broadcast(),      scatter(),  gather(),   allgather(),
                                                     reduce(),    reduce_scatter(), alltoall(), alltoallv()};
  return all;
}

}  // namespace beeline::bench
