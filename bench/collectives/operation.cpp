// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

namespace beeline::bench {

static_assert(allreduce_bus_factor(1) == 0 && allreduce_bus_factor(2) == 1 && allreduce_bus_factor(4) == 1.5);

namespace {

constexpr std::uint64_t mib = 1 << 20, everything = std::numeric_limits<std::uint64_t>::max();

CollectiveOperation allreduce() {
  return {.kind = CollectiveKind::allreduce,
          .name = "allreduce",
          .bus_factor = allreduce_bus_factor,
          .expectation =
              [](int ranks) {
                return Expectation{0, static_cast<std::uint32_t>(ranks)};
              },
          .start =
              [](Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                collectives.allreduce_on_stream(vectors.destination, vectors.source, vectors.count, vectors.type,
                                                Reduction::sum, call);
              },
          .choice =
              [](const Collectives& collectives, const VectorPair& vectors, const CollectiveCall& call) {
                return collectives.allreduce_choice(vectors.count, vectors.type, call);
              },
          .in_kernel = allreduce_in_kernel,
          .algorithms = {{Algorithm::automatic},
                         {Algorithm::packets_one_shot, 4 * mib},
                         {Algorithm::packets_two_shot, 64 * mib},
                         {Algorithm::two_shot},
                         {Algorithm::copy_engine, everything, mib, true},
                         {Algorithm::bulk, everything, mib, true},
                         {Algorithm::read, 16 * mib, 0, true},
                         {Algorithm::gather_cast, 16 * mib, 0, true},
                         {Algorithm::allgather, 16 * mib, 0, true},
                         {Algorithm::alltoall_allgather, 16 * mib, 0, true},
                         {Algorithm::tree, 16 * mib, 0, true}}};
}

}  // namespace

const std::vector<CollectiveOperation>& collective_operations() {
  static const std::vector<CollectiveOperation> all = {allreduce()};
  return all;
}

}  // namespace beeline::bench
