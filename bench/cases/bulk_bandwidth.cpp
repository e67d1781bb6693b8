// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/bulk/signal: one thread of each block moves the block's share by bulk copies, each followed by a signal,
/// message after message.

#include "beeline/device/bulk.hpp"
#include "cases/cases.hpp"
#include "cases/put_flood.hpp"

namespace beeline::bench::bulk_bandwidth_cases {

namespace {

constexpr unsigned block_threads = 32;  // only one of the threads issues copies

struct BulkPath {
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);
  template <class BlockGroup>
  static BEELINE_HOST_DEVICE BulkPort<BlockGroup> open(const BlockGroup& block, const Context& ctx) {
    return BulkPort<BlockGroup>(block, ctx, bulk_buffer());
  }
};

/// A few blocks fill the link: the grid that the options name, or 1 to 16 blocks; one team on a host rank.
std::vector<GridShape> bulk_shapes(const Bench& bench) {
  const World& world = bench.world();
  if (!world.device().is_gpu()) return grid_shapes(bench, 1);
  const unsigned asked = bench.options().threads_per_block, threads = asked != 0 ? asked : block_threads;
  const unsigned most = resident_blocks<PutFlood<BulkPath>, Flood>(bench.world(), threads);
  const unsigned blocks_asked = bench.options().blocks;
  require(most >= std::max(1u, blocks_asked), Status::no_resource,
          "at most " + std::to_string(most) + " blocks of " + std::to_string(sizeof(BulkBuffer)) +
              " bytes of shared memory can wait at once on this device");
  if (blocks_asked != 0) return {{blocks_asked, threads}};
  std::vector<GridShape> shapes;
  for (unsigned blocks : {1u, 2u, 4u, 8u, 16u})
    if (blocks <= most) shapes.push_back({blocks, threads});
  return shapes;
}

void require_bulk_copies(const Bench& bench) {
  const Device& device = bench.world().device();
  const int capability = device.is_gpu() ? compute_capability(device.index) : 0;
  require(!device.is_gpu() || capability >= bulk_compute_capability, Status::unavailable,
          "no bulk copies on a GPU of compute capability " + std::to_string(capability / 10) + "." +
              std::to_string(capability % 10));
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  require_bulk_copies(bench);
  const std::vector<GridShape> shapes = bulk_shapes(bench);
  auto state = std::make_shared<FloodState>(bench, bytes, shapes.back().blocks);
  std::vector<Measurement> all;
  for (const GridShape& shape : shapes)
    all.push_back(flood_measurement(state, shape, "device/bulk/signal",
                                    [=](Rounds rounds) { return state->time_library<BulkPath>(shape, rounds); }));
  return all;
}

/// Measures bulk copies that a kernel starts, with the sizes that `address-space` moves by the stores of many threads.
std::vector<Measurement> copies_of_all_sizes(Bench& bench) {
  require_bulk_copies(bench);
  const GridShape shape = bulk_shapes(bench).back();
  std::vector<Measurement> all;
  for (std::uint64_t bytes = 8 << 10; bytes <= std::uint64_t{64} << 20; bytes *= 2) {
    auto state = std::make_shared<FloodState>(bench, bytes, shape.blocks);
    all.push_back(flood_measurement(state, shape, "device/bulk/signal",
                                    [=](Rounds rounds) { return state->time_library<BulkPath>(shape, rounds); }));
    all.back().operation = "copy";
  }
  return all;
}

const ListedCases bandwidth_cases(Command::bandwidth, {{"put", "device/bulk/signal", true, prepare}});
const ListedCases address_space_cases(Command::address_space,
                                      {{"copy", "device/bulk/signal", false,
                                        [](Bench& bench, std::uint64_t) { return copies_of_all_sizes(bench); }}});

}  // namespace

}  // namespace beeline::bench::bulk_bandwidth_cases
