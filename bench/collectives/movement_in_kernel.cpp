// SPDX-License-Identifier: Apache-2.0
#include "beeline/collectives/movement.hpp"
#include "collectives/in_kernel.hpp"

namespace beeline::bench {

namespace {

/// Moves elements as bytes, so that one kernel serves every type; the algorithm is an argument of the kernel.
template <Operation operation>
struct MovementRounds {
  static constexpr unsigned max_threads = 512;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, CollectiveChannel channel,
                                      std::byte* destination, const std::byte* source, std::uint64_t piece_bytes,
                                      Algorithm algorithm) const {
    Session session(grid.block(), ctx, channel);
    const SessionCall how{.algorithm = algorithm};
    time_rounds(grid.block(), loop, [&](std::uint64_t) {
      return move_elements(session, operation, destination, source, piece_bytes, how) == Status::ok;
    });
  }
};

}  // namespace

std::vector<double> time_movement(Operation operation, TimedKernel& timed, const KernelLoop& loop,
                                  const CollectiveChannel& channel, const VectorPair& vectors) {
  return with_member<movements_in_kernels>(operation, [&]<Operation known>() {
    return timed.run(loop.threads, true, loop.rounds, MovementRounds<known>{}, channel,
                     static_cast<std::byte*>(vectors.destination), static_cast<const std::byte*>(vectors.source),
                     std::uint64_t{vectors.count * bytes_of(vectors.type)}, loop.algorithm);
  });
}

}  // namespace beeline::bench
