// SPDX-License-Identifier: Apache-2.0
/// @file
/// Schemes triggered and triggered_stream: as proxy, but all transfers of several reductions are armed before the
/// kernel starts, with the rank's engine or on a stream for each lane. The block that completes a chunk's sum triggers
/// its lane; source, size and target come from the armed transfer. Source: seed 003, GPU Triggered Networking.

#include <algorithm>
#include <string>

#include "beeline/control/trigger.hpp"
#include "beeline/host/triggers.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

/// Operations of a launch that a stream holds.
constexpr std::uint32_t most_of_stream = 16;
constexpr int most_ranks_on_streams = 1 + most_of_stream / 2;  // a reduction has two steps for each other rank

std::string why_no_streams(const beeline::Config& config) {
  return config.size <= most_ranks_on_streams ? ""
                                              : "a stream holds too few armed transfers for more than " +
                                                    std::to_string(most_ranks_on_streams) + " ranks";
}

/// A lane's number is its tag; its n-th transfer has threshold n.
struct TriggeringSender {
  /// Blocks as with a host engine (proxy.cpp); each lane has a stream.
  static constexpr LaneShape on_gpus{beeline::TriggerOptions::most_streams, 8};
  beeline::TriggerChannel triggers;

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, const Place& place,
                                                         std::uint64_t) const {
    return all.prepare(block, transfer, place.member) ? beeline::trigger(block, ctx, triggers, place.lane)
                                                      : beeline::Status::ok;
  }
};

template <beeline::TriggeredBy by>
class Triggered final : public LaneScheme<TriggeringSender> {
 public:
  explicit Triggered(Vectors& vectors)
      : LaneScheme(vectors, chunk_bytes(vectors)), triggers_(world(), {.tags = lanes().lanes,
                                                                       .entries = 3 * armed_at_once(),
                                                                       .queues = lanes().lanes,
                                                                       .by = by,
                                                                       .streams = lanes().lanes}) {}

 private:
  static constexpr bool by_streams = by == beeline::TriggeredBy::stream;
  /// Most transfers that are armed for one launch. They are armed during the preceding launch, when the last transfers
  /// of the launch before that may still be pending; a stream holds 64 of all these.
  static constexpr std::uint32_t most_armed = by_streams ? most_of_stream : 256;

  /// On streams a lane has so few chunks that their transfers can be armed.
  static std::size_t chunk_bytes(const Vectors& vectors) {
    const std::size_t chunk = vectors.post_chunk_bytes();
    const auto ranks = static_cast<std::size_t>(vectors.world().size());
    if (!by_streams || ranks == 1) return chunk;
    constexpr unsigned usual = TriggeringSender::on_gpus.lanes;
    const unsigned asked = vectors.shape().lanes > 0 ? vectors.shape().lanes : usual;
    const std::size_t lanes = vectors.world().device().is_gpu() ? std::min(asked, usual) : 1;
    const std::size_t chunks = lanes * std::max<std::size_t>(1, most_armed / (2 * (ranks - 1)));
    const std::size_t part = (vectors.count() / ranks + 1) * sizeof(float);
    return std::max(chunk, (part / chunks / sizeof(float) / grain + 1) * grain * sizeof(float));
  }
  /// The transfers of one reduction to which most_armed applies: those of one tag by streams, otherwise all.
  [[nodiscard]] std::uint32_t transfers() const {
    const std::uint32_t chunks = ring().chunks, lanes = this->lanes().lanes;
    return std::max(1u, ring().steps() * (by_streams ? (chunks + lanes - 1) / lanes : chunks));
  }
  [[nodiscard]] std::uint32_t armed_at_once() const { return std::max(most_armed, transfers()); }
  [[nodiscard]] TriggeringSender sender() const override { return {triggers_.channel()}; }
  [[nodiscard]] int reductions_at_once() const override {
    return static_cast<int>(std::max(1u, most_armed / transfers()));
  }
  /// Arms transfers in the order in which the lanes' blocks come to them.
  void prepare(const Lanes& all, std::uint64_t done, int reductions) override {
    for (int reduction = 0; reduction < reductions; ++reduction)
      for (unsigned lane = 0; lane < all.shape.lanes; ++lane) {
        const std::uint64_t before = done + static_cast<std::uint64_t>(reduction);
        std::uint64_t number = before * ring().steps() * all.chunks_of(lane);
        for (std::uint32_t step = 0; step < ring().steps(); ++step)
          for (std::uint32_t chunk = lane; chunk < ring().chunks; chunk += all.shape.lanes)
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
      triggers_.arm(TriggeredOperation::put(all.destination(transfer), all.source(transfer), transfer.sends.count, next)
                        .and_signal(arrived, number),
                    when);
  }

  beeline::Triggers triggers_;
};

}  // namespace

SchemeInfo triggered() {
  return SchemeInfo::of<Triggered<beeline::TriggeredBy::engine>>(
      {"triggered",
       "one kernel for many reductions: blocks add chunks, and trigger what is armed with the rank's engine",
       "triggered/copy_engine/signal"});
}

SchemeInfo triggered_stream() {
  return SchemeInfo::of<Triggered<beeline::TriggeredBy::stream>>(
      {"triggered_stream", "as triggered, but a stream for each lane waits for its triggers, and copies",
       "triggered/copy_engine/signal", why_no_streams});
}

}  // namespace ring_reduction
