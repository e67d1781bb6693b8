// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/signal: every block of a grid stores its share directly at the destination, then sets a signal, message
/// after message.

#include "cases/cases.hpp"
#include "cases/put_flood.hpp"

namespace beeline::bench::put_bandwidth_cases {

namespace {

/// Stores by all threads of the block.
template <class BlockGroup>
struct StoreSender {
  BlockGroup block;
  const Context& ctx;
  BEELINE_HOST_DEVICE void put_signal(std::byte* destination, const std::byte* source, std::uint64_t bytes,
                                      std::uint64_t* signal, std::uint64_t value, std::uint32_t peer) const {
    beeline::put_signal(block, ctx, destination, source, bytes, signal, value, peer);
  }
};

struct StorePath {
  static constexpr std::size_t shared_bytes = 0;
  template <class BlockGroup>
  static BEELINE_HOST_DEVICE StoreSender<BlockGroup> open(const BlockGroup& block, const Context& ctx) {
    return {block, ctx};
  }
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  const std::vector<GridShape> shapes = resident_shapes<PutFlood<StorePath>, Flood>(bench);
  auto state = std::make_shared<FloodState>(bench, bytes, shapes.back().blocks);
  std::vector<Measurement> all;
  for (const GridShape& shape : shapes) {
    all.push_back(
        flood_measurement(state, shape, "bare/store", [=](Rounds rounds) { return state->time_bare(shape, rounds); }));
    all.back().peer_of = "device/peer/signal";
    all.back().stores_to_peer = true;
    all.push_back(flood_measurement(state, shape, "device/peer/signal",
                                    [=](Rounds rounds) { return state->time_library<StorePath>(shape, rounds); }));
    all.back().baseline = all.size() - 2;
  }
  return all;
}

const ListedCases bandwidth_cases(Command::bandwidth, {{"put", "device/peer/signal", true, prepare}});

}  // namespace

}  // namespace beeline::bench::put_bandwidth_cases
