// SPDX-License-Identifier: Apache-2.0
#include "common/copy_bandwidth.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "common/sampling.hpp"

namespace apps {

namespace {

/// A buffer far larger than caches, and enough copies that their start-up time is negligible.
struct Copies {
  std::size_t bytes;
  int count;
};
constexpr Copies of_gpu{std::size_t{1} << 29, 32}, of_host{std::size_t{1} << 25, 4};
static_assert(2 * of_gpu.bytes < copy_heap_bytes && 2 * of_host.bytes < copy_heap_bytes);

/// Collective. Returns the seconds of one sample on this rank.
double timed_copies(beeline::World& world, std::byte* to, const std::byte* from, const Copies& copies) {
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int copy = 0; copy < copies.count; ++copy) world.copy(to, from, copies.bytes, world.stream());
  world.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::optional<double> copy_bandwidth(beeline::World& world) {
  bool gpus = false;
  for (int rank = 0; rank < world.size(); ++rank) gpus = gpus || world.device(rank).is_gpu();
  if (!gpus && world.config().host_threads > 1) return std::nullopt;
  // All ranks allocate the same size.
  const beeline::SymmetricArray<std::byte> buffers(world, 2 * (gpus ? of_gpu : of_host).bytes);
  const Copies copies = world.device().is_gpu() ? of_gpu : of_host;
  std::byte* to = buffers.data() + buffers.count() / 2;
  static_cast<void>(timed_copies(world, to, buffers.data(), {copies.bytes, 1}));
  std::array<double, 3> seconds{};
  for (double& sample : seconds) sample = timed_copies(world, to, buffers.data(), copies);
  std::ranges::sort(seconds);
  const double mine = 2.0 * static_cast<double>(copies.bytes) * copies.count / seconds[seconds.size() / 2];
  double sum = 0;
  for (const double theirs : from_all(world, mine)) sum += theirs;
  return sum;
}

}  // namespace apps
