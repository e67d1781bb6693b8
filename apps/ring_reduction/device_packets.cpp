// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme device_packets: like device, but chunks travel as packets, whose arrival needs no signal and no fence: faster
/// for short vectors, half the bandwidth for long ones. A lane takes a few chunks at a time through all steps; they
/// must be few enough for the rings, because all ranks send before they receive.
/// Source: seed 003, intra-kernel communication; the packets are NCCL's LL protocol.

#include "device_packets.hpp"

#include <algorithm>
#include <vector>

#include "beeline/device/packets.hpp"
#include "beeline/host/packets.hpp"
#include "scheme.hpp"
#include "sum.hpp"

namespace ring_reduction {

namespace {

/// Chunks of a lane in flight at a time. They fill a quarter of the ring, so that a rank that is one step ahead of its
/// neighbour still finds free cells, and no cycle of ranks waits for free cells.
constexpr std::uint32_t window = packet_depth / 4;

/// Threads of a block: with more, each would have too few registers for two ports.
constexpr unsigned packet_threads = 256;

/// The arguments of the kernel, the same for all blocks.
struct PacketLanes {
  Ring ring;
  float *data, *inbox;
  beeline::PacketChannel channels[most_packet_lanes];  ///< one for each lane
};

/// One block's lane.
template <class BlockGroup>
class PacketLane {
 public:
  BEELINE_HOST_DEVICE PacketLane(const BlockGroup& block, const beeline::Context& ctx, const PacketLanes& lanes,
                                 const beeline::PacketChannel& channel)
      : block_(block), ring_(lanes.ring), data_(lanes.data), inbox_(lanes.inbox),
        to_next_(block, ctx, channel, ring_.next()), from_previous_(block, ctx, channel, ring_.previous()) {}

  /// Takes chunks first, first + stride, ... below `end` through all steps.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status reduce(std::uint32_t first, std::uint32_t stride,
                                                           std::uint32_t end) {
    const std::uint32_t steps = ring_.steps();
    // After the last step, the chunks of that step are only received.
    for (std::uint32_t step = 0; step <= steps; ++step)
      for (std::uint32_t chunk = first; chunk < end; chunk += stride) {
        beeline::Status status = beeline::Status::ok;
        if (step > 0) status = receive(ring_.transfer(step - 1, chunk));
        if (status == beeline::Status::ok && step < steps) status = send(ring_.transfer(step, chunk));
        if (status != beeline::Status::ok) return status;
      }
    return beeline::Status::ok;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Transfer& transfer) {
    return to_next_.send(data_ + transfer.sends.first, transfer.sends.count * sizeof(float));
  }

  /// Stores in the vector what the next step sends: the sum with the chunk that arrived, or the result that arrived.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status receive(const Transfer& transfer) {
    float* mine = data_ + transfer.receives.first;
    float* arrived = transfer.reduces ? inbox_ + transfer.inbox : mine;
    const beeline::Status status = from_previous_.receive(arrived, transfer.receives.count * sizeof(float));
    if (status == beeline::Status::ok && transfer.reduces)
      store_sum(block_.thread_rank(), block_.size(), {mine, arrived, mine, nullptr, transfer.receives.count});
    block_.sync();  // other threads send elements that this thread has added
    return status;
  }

  const BlockGroup& block_;
  const Ring ring_;
  float* const data_;
  float* const inbox_;
  beeline::PacketPort<BlockGroup> to_next_, from_previous_;
};

struct RunPacketLanes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, const PacketLanes& lanes,
                                      int reductions) const {
    const std::uint32_t stride = grid.blocks(), chunks = lanes.ring.chunks;
    const beeline::PacketChannel channel = lanes.channels[grid.block_rank()];
    PacketLane lane(grid.block(), ctx, lanes, channel);
    for (int reduction = 0; reduction < reductions; ++reduction)
      for (std::uint32_t first = grid.block_rank(); first < chunks; first += window * stride) {
        const std::uint32_t end = chunks - first < window * stride ? chunks : first + window * stride;
        if (lane.reduce(first, stride, end) != beeline::Status::ok) return;
      }
  }
};

class DevicePackets final : public Scheme {
 public:
  explicit DevicePackets(Vectors& vectors)
      : Scheme(vectors), ring_(vectors.ring(std::min(vectors.shape().packet_chunk_bytes, packet_slot_bytes))),
        lanes_(std::min(
            most_packet_lanes,
            vectors
                .agree_on_lanes(ring_, {most_packet_lanes, 1},
                                beeline::resident_blocks<RunPacketLanes, PacketLanes, int>(world(), packet_threads))
                .lanes)) {
    for (unsigned lane = 0; lane < lanes_; ++lane) rings_.emplace_back(world(), packet_slot_bytes, packet_depth);
  }

  void run(int reductions) override {
    if (ring_.ranks == 1) return;
    PacketLanes lanes{ring_, vectors().data(), vectors().inbox(), {}};
    for (unsigned lane = 0; lane < lanes_; ++lane) lanes.channels[lane] = rings_[lane].channel();
    beeline::launch(world(), {.blocks = lanes_, .threads = packet_threads, .waits = true}, RunPacketLanes{}, lanes,
                    reductions);
    world().synchronize();
  }
  const Ring& ring() const override { return ring_; }
  LaneShape lanes() const override { return {lanes_, 1}; }

 private:
  Ring ring_;
  unsigned lanes_;
  std::vector<beeline::PacketRings> rings_;  ///< by lane
};

}  // namespace

SchemeInfo device_packets() {
  return SchemeInfo::of<DevicePackets>(
      {"device_packets", "one kernel for all reductions: each block sends its chunks as packets", "device/peer/ll"});
}

}  // namespace ring_reduction
