// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 6: one kernel for all iterations. Blocks stay on the device and synchronise at a grid barrier; the CPU starts
/// one kernel and sleeps. If the device holds enough blocks, three blocks only communicate: two transfer planes, one
/// for each side, and one exchanges gosa. Otherwise the first block transfers the planes of both sides and exchanges
/// gosa.
///
/// Small planes travel as packets (no fence, no separate signal), larger planes by put_signal: a block unpacks packets
/// only as fast as its loads return, 8 bytes per thread and round trip.
/// Source: seed 000 section 5.8.1 (persistent threads).

#include <type_traits>

#include "beeline/device/put_get.hpp"
#include "beeline/host/packets.hpp"
#include "common/last_block.hpp"
#include "method.hpp"
#include "prefetch.hpp"

namespace himeno {

namespace {

/// Transfer of outermost planes to the neighbours.
struct Carriage {
  beeline::PacketChannel packets;  ///< used when `by_packets`
  std::uint64_t* arrived;          ///< [2 (odd, even)][sides], symmetric; used unless `by_packets`
  std::uint32_t* finished;         ///< [sides]: tiles of the outermost plane computed so far in this run, modulo 2^32
  unsigned by_packets;
  unsigned carriers;  ///< blocks that compute nothing: 0 or `carrier_blocks`
};
constexpr unsigned carrier_blocks = sides + 1, gosa_carrier = sides;

/// The part of one block in the transfer across one side.
template <class BlockGroup>
class Carrier {
 public:
  BEELINE_HOST_DEVICE Carrier(const BlockGroup& block, const beeline::Context& ctx, const Edges& edges, unsigned side,
                              const Carriage& carriage)
      : block_(block), ctx_(ctx), edge_(edges.side[side]), side_(side), carriage_(carriage),
        plane_(static_cast<std::size_t>(edges.plane)), port_(block, ctx, carriage.packets, edge_.peer) {}

  /// Sends the outermost plane that iteration `step` computes, once all `tiles` tiles of the plane are computed.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Fields& f, const Step& step, unsigned tiles) {
    if (const beeline::Status status = await_tiles(step, tiles); status != beeline::Status::ok) return status;
    float* p = f.pressure(step.iteration + 1);
    if (carriage_.by_packets != 0) return port_.send(p + edge_.mine, plane_ * sizeof(float));
    beeline::put_signal(block_, ctx_, p + edge_.theirs, p + edge_.mine, plane_, signal(step, opposite(side_)),
                        step.tag() + 1, edge_.peer);
    return beeline::Status::ok;
  }

  /// Receives the peer's plane of the same iteration into the halo.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status receive(const Fields& f, const Step& step) {
    if (carriage_.by_packets != 0)
      return port_.receive(f.pressure(step.iteration + 1) + edge_.halo, plane_ * sizeof(float));
    return beeline::wait(block_, ctx_, signal(step, side_), beeline::Compare::greater_equal, step.tag() + 1,
                         edge_.peer);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(const Step& step, unsigned side) const {
    return carriage_.arrived + ((step.tag() + 1) % 2) * sides + side;
  }

  BEELINE_HOST_DEVICE beeline::Status await_tiles(const Step& step, unsigned tiles) {
    beeline::Status status = beeline::Status::ok;
    if (block_.thread_rank() == 0) {
      const std::uint32_t expected = tiles * static_cast<std::uint32_t>(step.iteration + 1);
      const apps::DeviceCounter finished(carriage_.finished[side_]);
      status = beeline::poll_until(
          ctx_, {beeline::Operation::user, ctx_.rank, step.tag(), expected, beeline::Compare::equal},
          beeline::Timeout::none(), [&](std::uint64_t& observed) {
            // Relaxed until the condition holds: acquiring polls would drop the first-level cache under computing
            // blocks.
            observed = finished.load(std::memory_order_relaxed);
            return observed == expected && finished.load(std::memory_order_acquire) == expected;
          });
    }
    return beeline::agree(block_, status);
  }

  const BlockGroup& block_;
  const beeline::Context& ctx_;
  const Edge edge_;
  const unsigned side_;
  const Carriage& carriage_;
  const std::size_t plane_;
  beeline::PacketPort<BlockGroup> port_;
};

/// Every role runs the same loop, so that each piece of code is in the kernel only once: inlined everywhere, with the
/// fields' addresses in constant memory.
struct Everything {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Fields f, Edges edges, Tiling tiling,
                                      Sums sums, Mailbox mailbox, Carriage carriage, Step step, int iterations) const {
    const unsigned role = grid.block_rank();
    const bool computes = role >= carriage.carriers;
    const bool sums_up = step.communicate && role == (carriage.carriers == 0 ? 0 : gosa_carrier);
    // Each carrier takes one side; without carriers the first block takes both.
    const bool alone = carriage.carriers == 0 && role == 0, carrier = carriage.carriers != 0 && role < sides;
    const unsigned first_side = carrier ? role : 0;
    const unsigned end_side = !step.communicate ? 0 : alone ? sides : carrier ? role + 1 : 0;
    for (; step.iteration < iterations; ++step.iteration) {
      if (computes) update(grid, f, edges, tiling, sums, carriage, step);
      grid.block().sync();  // a block with all roles reuses its scratch
      if (first_side < end_side &&
          exchange_planes(grid, ctx, f, edges, tiling, carriage, step, first_side, end_side) != beeline::Status::ok)
        return;
      if (sums_up && step.iteration > 0 && sum_previous(grid, ctx, sums, mailbox, step) != beeline::Status::ok) return;
      if (grid.sync(ctx) != beeline::Status::ok) return;
    }
    if (sums_up && sum_previous(grid, ctx, sums, mailbox, step) == beeline::Status::ok)
      static_cast<void>(collect(grid.block(), ctx, mailbox, step.tag() - 1));
  }

 private:
  /// One iteration of a computing block.
  template <class Grid>
  BEELINE_HOST_DEVICE static void update(const Grid& grid, const Fields& f, const Edges& edges, const Tiling& tiling,
                                         const Sums& sums, const Carriage& carriage, const Step& step) {
    const auto& block = grid.block();
    const StoreHere store{f.pressure(step.iteration + 1)};
    double gosa = 0;
    for (unsigned item = grid.block_rank() - carriage.carriers; item < tiling.items();
         item += grid.blocks() - carriage.carriers) {
      const unsigned tile = item % tiling.tiles;
      const Planes part = planes_of_item(tiling, {1, f.planes + 1}, item);
      const auto update_some = [&](Planes some) {
        gosa += update_tile(block, f, tiling, f.pressure(step.iteration), tile, some, store);
      };
      const auto publish = [&](unsigned side) {
        block.sync();
        if (block.thread_rank() == 0)
          apps::DeviceCounter(carriage.finished[side]).fetch_add(1, std::memory_order_release);
      };
      edges_first(edges, part, update_some, publish, step.communicate ? 0 : sides);
    }
    prefetch_next(grid, f, edges, tiling, carriage, step.communicate);
    store_block_gosa(grid, sums, static_cast<unsigned>(step.iteration % 2), gosa);
  }

  /// Prefetches the coefficients that this block needs first in the next iteration, so that memory is busy while blocks
  /// exchange sums and wait at the grid barrier.
  template <class Grid>
  BEELINE_HOST_DEVICE static void prefetch_next(const Grid& grid, const Fields& f, const Edges& edges,
                                                const Tiling& tiling, const Carriage& carriage, bool communicate) {
    const unsigned item = grid.block_rank() - carriage.carriers;
    if (item >= tiling.items()) return;
    const Planes part = planes_of_item(tiling, {1, f.planes + 1}, item);
    const bool from_above = communicate && edges.touched(upper, part) && !edges.touched(lower, part);
    prefetch_coefficients(grid.block(), f, tiling, item % tiling.tiles, from_above ? part.last - 1 : part.first);
  }

  /// Sends the outermost planes of sides [first, end), then receives the neighbours'.
  template <class Grid>
  BEELINE_HOST_DEVICE static beeline::Status exchange_planes(const Grid& grid, const beeline::Context& ctx,
                                                             const Fields& f, const Edges& edges, const Tiling& tiling,
                                                             const Carriage& carriage, const Step& step, unsigned first,
                                                             unsigned end) {
    using BlockGroup = std::remove_cvref_t<decltype(grid.block())>;
    for (unsigned turn = 2 * first; turn < 2 * end; ++turn) {
      const unsigned count = end - first, done = turn - 2 * first;
      const bool sending = done < count;
      const unsigned side = first + done % count;
      if (!edges.side[side].open()) continue;
      Carrier<BlockGroup> carrier(grid.block(), ctx, edges, side, carriage);
      const beeline::Status status = sending ? carrier.send(f, step, tiling.tiles) : carrier.receive(f, step);
      if (status != beeline::Status::ok) return status;
    }
    return beeline::Status::ok;
  }
};

class Persistent final : public Method {
 public:
  explicit Persistent(Domain& domain)
      : Method(domain), arrived_(world(), 2 * sides), finished_(world(), sides),
        // Both neighbours send before they receive, so a message must fit: the channel has two slots of a plane;
        // reading frees a slot.
        packets_(world(), goes_by_packets(domain) ? domain.plane_bytes() : 8, 2),
        shape_(domain.shape<Everything, Fields, Edges, Tiling, Sums, Mailbox, Carriage, Step, int>()) {
    constexpr unsigned enough_blocks = 8;
    carriage_.arrived = arrived_.data();
    carriage_.finished = finished_.data();
    carriage_.carriers = shape_.blocks >= enough_blocks ? carrier_blocks : 0;
    carriage_.by_packets = goes_by_packets(domain) ? 1 : 0;
    carriage_.packets = packets_.channel();
    tiling_ = domain.tiling(shape_.blocks - carriage_.carriers, domain.slab().planes);
  }
  void iterate(int iterations, bool communicate) override {
    world().stream().fill(finished_.data(), 0, finished_.bytes());
    const Step step{0, domain().take_tags(iterations), communicate};
    beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads, .waits = true}, Everything{},
                    domain().fields(), domain().edges(), tiling_, domain().sums(), domain().mailbox(), carriage_, step,
                    iterations);
    finish();
  }

 private:
  static bool goes_by_packets(const Domain& domain) {
    constexpr std::size_t largest_packet_plane = 16384;
    return domain.plane_bytes() <= largest_packet_plane;
  }

  beeline::SymmetricArray<std::uint64_t> arrived_;
  beeline::SymmetricArray<std::uint32_t> finished_;
  beeline::PacketRings packets_;
  Shape shape_;
  Tiling tiling_{};
  Carriage carriage_{};
};

}  // namespace

MethodInfo persistent() {
  return MethodInfo::of<Persistent>({"persistent", "one kernel for all iterations, with grid barriers and packets"});
}

}  // namespace himeno
