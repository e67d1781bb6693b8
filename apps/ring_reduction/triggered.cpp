// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme triggered: as proxy, but all transfers of several reductions are armed before the kernel starts. A block that
/// has a chunk's sum ready counts for its lane, and neither says what is to be sent nor to whom.
/// Source: seed 003, GPU Triggered Networking.

#include <algorithm>

#include "beeline/control/trigger.hpp"
#include "beeline/host/triggers.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

/// A lane's number is its tag; its n-th transfer has threshold n.
struct TriggeringSender {
  /// As proxy.
  static constexpr unsigned lanes = 16;
  beeline::TriggerChannel triggers;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, std::uint64_t*,
                                                         std::uint64_t) const {
    all.prepare(grid.block(), transfer);
    return beeline::trigger(grid.block(), ctx, triggers, grid.block_rank());
  }
  /// The next reduction changes what may still be sent.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    return beeline::quiet(grid.block(), ctx, triggers, grid.block_rank());
  }
};

class Triggered final : public LaneScheme<TriggeringSender> {
 public:
  explicit Triggered(Vectors& vectors)
      : LaneScheme(vectors, vectors.shape().post_chunk_bytes),
        triggers_(world(), {.tags = lanes(), .entries = std::max(most_armed, transfers()), .queues = lanes()}) {}

 private:
  static constexpr std::uint32_t most_armed = 4096;

  [[nodiscard]] std::uint32_t transfers() const { return ring().steps() * ring().chunks; }
  [[nodiscard]] TriggeringSender sender() const override { return {triggers_.channel()}; }
  [[nodiscard]] int reductions_at_once() const override {
    return static_cast<int>(std::max(1u, most_armed / std::max(1u, transfers())));
  }
  /// In the order in which the lanes' blocks come to them.
  void prepare(const Lanes& all, std::uint64_t done, int reductions) override {
    for (unsigned lane = 0; lane < lanes(); ++lane) {
      std::uint64_t number = done * ring().steps() * all.chunks_of(lane, lanes());
      for (int reduction = 0; reduction < reductions; ++reduction)
        for (std::uint32_t step = 0; step < ring().steps(); ++step)
          for (std::uint32_t chunk = lane; chunk < ring().chunks; chunk += lanes())
            arm(all, ring().transfer(step, chunk), lane, ++number);
    }
  }
  void arm(const Lanes& all, const Transfer& transfer, unsigned lane, std::uint64_t number) {
    using beeline::TriggeredOperation;
    const int next = static_cast<int>(ring().next());
    std::uint64_t* const arrived = &all.arrived[lane].value;
    const beeline::TriggerCondition when{.tag = lane, .threshold = number};
    if (transfer.sends.count == 0)
      triggers_.arm(TriggeredOperation::signal(arrived, number, next), when);
    else
      triggers_.arm(TriggeredOperation::put(all.destination(transfer), all.data + transfer.sends.first,
                                            transfer.sends.count, next)
                        .and_signal(arrived, number),
                    when);
  }

  beeline::Triggers triggers_;
};

}  // namespace

SchemeInfo triggered() {
  return SchemeInfo::of<Triggered>(
      {"triggered", "one kernel for many reductions: each block adds its chunks, and triggers what is armed",
       "triggered/copy_engine/signal"});
}

}  // namespace ring_reduction
