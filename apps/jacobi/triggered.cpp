// SPDX-License-Identifier: Apache-2.0
/// @file
/// Methods triggered and triggered_device: like proxy, but the transfers of many iterations are armed before the kernel
/// starts, with an engine of the host or of the device. A block that has computed a segment counts for the tag of its
/// transfer. Source: seed 003, GPU Triggered Networking.

#include <algorithm>

#include "beeline/control/trigger.hpp"
#include "beeline/host/triggers.hpp"
#include "persistent.hpp"

namespace jacobi {

namespace {

/// Each signal that a neighbour receives has a tag, and each iteration that sends has a threshold.
struct Triggering {
  static constexpr int segment_quads = 4 * block_threads;  // as proxy
  beeline::TriggerChannel triggers;
  const std::uint64_t* arrived;  ///< the first of the signals

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Message& message) const {
    return beeline::trigger(grid.block(), ctx, triggers, static_cast<std::uint32_t>(message.signal - arrived));
  }
  /// When the kernel has ended, the host may refill the fields or read them.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    auto status = beeline::Status::ok;
    for (std::uint32_t queue = grid.block_rank(); queue < triggers.queues.queues; queue += grid.blocks())
      if (status == beeline::Status::ok) status = beeline::quiet(grid.block(), ctx, triggers, queue);
    return status;
  }
};

template <beeline::TriggeredBy by>
class Triggered final : public Persistent<Triggering> {
 public:
  explicit Triggered(Domain& domain)
      : Persistent(domain), triggers_(world(), {.tags = sides * segments(),
                                                .entries = 3 * std::max(most_armed, sides * segments()),
                                                .queues = std::min(most_queues, sides * segments()),
                                                .by = by}) {}

 private:
  static constexpr unsigned most_queues = 8;
  /// Armed transfers of a launch. The device's engine accepts none while it runs: all are armed between two launches.
  static constexpr std::uint32_t most_armed = by == beeline::TriggeredBy::engine ? 1024 : 4096;

  [[nodiscard]] Triggering sender() const override { return {triggers_.channel(), arrived()}; }
  [[nodiscard]] int iterations_at_once() const override {
    return static_cast<int>(std::max(1u, most_armed / (sides * segments())));
  }
  /// If so, the table holds the last transfers of a launch, those of the next launch, and those that are being armed.
  [[nodiscard]] bool prepares_ahead() const override {
    return by == beeline::TriggeredBy::engine && world().device().is_gpu();  // a CPU runs the kernel meanwhile
  }
  void prepare(const Shares& shares, Step step, int iterations) override {
    if (!step.communicate) return;
    for (int i = 0; i < iterations; ++i, ++step.iteration) {
      ++sent_;
      for (unsigned row = 0; row < sides; ++row)
        for (unsigned number = 0; number < segments(); ++number) {
          const Piece piece = segment_of(shares, row, number);
          for (unsigned side = 0; side < sides && !piece.empty(); ++side)
            if (touches(domain().edges(), side, piece))
              arm(message_of(domain().fields(), domain().edges().side[side], shares, piece, step, side, number));
        }
    }
  }
  void arm(const Message& message) {
    triggers_.arm(beeline::TriggeredOperation::put(message.destination, message.source, message.count,
                                                   static_cast<int>(message.peer))
                      .and_signal(message.signal, message.tag),
                  {.tag = static_cast<std::uint32_t>(message.signal - arrived()), .threshold = sent_});
  }

  beeline::Triggers triggers_;
  std::uint64_t sent_ = 0;  ///< iterations that have sent, or whose transfers are armed
};

}  // namespace

MethodInfo triggered() {
  return MethodInfo::of<Triggered<beeline::TriggeredBy::engine>>(
      {"triggered", "one kernel for many iterations: blocks trigger transfers of the outermost rows armed beforehand",
       "triggered/copy_engine/signal"});
}

MethodInfo triggered_device() {
  return MethodInfo::of<Triggered<beeline::TriggeredBy::device_engine>>(
      {"triggered_device", "as triggered, but a block of the device counts the triggers, and moves the rows",
       "triggered/copy_engine/signal"});
}

}  // namespace jacobi
