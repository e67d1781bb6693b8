// SPDX-License-Identifier: Apache-2.0
#include "collectives/in_kernel.hpp"

#include "beeline/collectives/allreduce.hpp"

namespace beeline::bench {

namespace {

template <class T, Algorithm algorithm>
struct AllreduceRounds {
  static constexpr unsigned max_threads = 512;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, CollectiveChannel channel,
                                      T* destination, const T* source, std::uint64_t count) const {
    Session session(grid.block(), ctx, channel);
    time_rounds(grid.block(), loop, [&](std::uint64_t) {
      return allreduce(session, destination, source, count, Reduction::sum, {.algorithm = algorithm}) == Status::ok;
    });
  }
};

template <class T, Algorithm algorithm>
std::vector<double> run(TimedKernel& timed, const KernelLoop& loop, const CollectiveChannel& channel,
                        const VectorPair& vectors) {
  return timed.run(loop.threads, true, loop.rounds, AllreduceRounds<T, algorithm>{}, channel,
                   static_cast<T*>(vectors.destination), static_cast<const T*>(vectors.source),
                   std::uint64_t{vectors.count});
}

template <class T>
std::vector<double> run_of(TimedKernel& timed, const KernelLoop& loop, const CollectiveChannel& channel,
                           const VectorPair& vectors) {
  return with_member<measured_in_kernels(Operation::allreduce)>(
      loop.algorithm, [&]<Algorithm known>() { return run<T, known>(timed, loop, channel, vectors); });
}

}  // namespace

std::vector<double> time_in_kernel(Operation operation, TimedKernel& timed, const KernelLoop& loop,
                                   const CollectiveChannel& channel, const VectorPair& vectors) {
  if (operation != Operation::allreduce) return time_movement(operation, timed, loop, channel, vectors);
  return vectors.type == ElementType::bfloat16 ? run_of<BFloat16>(timed, loop, channel, vectors)
                                               : run_of<float>(timed, loop, channel, vectors);
}

}  // namespace beeline::bench
