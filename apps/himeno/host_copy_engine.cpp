// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 2: the host starts each copy and each kernel. The copy engine copies a half's planes, on one stream for each
/// side, while the other half is computed. A signal in the receiver's pinned memory notifies the receiver's CPU.
/// Source: seed 000 section 4.5.2 and figure 4.16.

#include <array>

#include "beeline/device/signal.hpp"
#include "beeline/host/stream_operations.hpp"
#include "halves.hpp"
#include "host_gosa.hpp"
#include "method.hpp"

namespace himeno {

namespace {

class HostCopyEngine final : public Method {
 public:
  explicit HostCopyEngine(Domain& domain)
      : Method(domain), halves_(domain), gosa_(domain), arrived_(world(), sides, beeline::Heap::pinned),
        window_(world()) {
    for (auto& stream : copies_) stream = world().make_stream();
    for (auto& event : computed_) event = world().stream().make_event();
  }

  void iterate(int iterations, bool communicate) override {
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      for (unsigned half = 0; half < 2; ++half) {
        if (step.needs_halos()) await_halos(half, step);
        halves_.launch(half, step.iteration);
        if (communicate) send_planes(half, step);
      }
      if (communicate) {
        gosa_.enqueue_sum(step, 2, halves_.blocks());
        // Exchanges sums one iteration late, so that the next kernels are queued before the CPU waits for a sum.
        if (step.iteration > 0) gosa_.exchange(previous(step));
      }
      window_.advance();
    }
    if (communicate) gosa_.exchange(previous(step));
    if (communicate) gosa_.finish(previous(step));
    world().synchronize();
    for (auto& stream : copies_) world().synchronize(*stream);
  }

 private:
  [[nodiscard]] static Step previous(Step step) {
    --step.iteration;
    return step;
  }

  void await_halos(unsigned half, const Step& step) {
    for (unsigned side = 0; side < sides; ++side) {
      if (!halves_.touches(half, side)) continue;
      const beeline::Status status =
          beeline::wait(beeline::Thread{}, world().host_context(), &arrived_.data()[side],
                        beeline::Compare::greater_equal, step.tag(), domain().edges().side[side].peer);
      apps::require_ok(world(), status, "waiting for a neighbour's plane");
    }
  }

  /// Copies the half's outermost planes to the neighbours' halos, once the planes are computed.
  void send_planes(unsigned half, const Step& step) {
    float* p = domain().fields().pressure(step.iteration + 1);
    beeline::Event& done = *computed_[static_cast<unsigned>(step.iteration % 2) * 2 + half];
    bool recorded = false;
    for (unsigned side = 0; side < sides; ++side) {
      if (!halves_.touches(half, side)) continue;
      if (!recorded) world().stream().record(done);
      recorded = true;
      const Edge& edge = domain().edges().side[side];
      const int peer = static_cast<int>(edge.peer);
      beeline::Stream& stream = *copies_[side];
      stream.wait_event(done);
      world().copy(world().at(p, peer) + edge.theirs, p + edge.mine, domain().plane_bytes(), stream);
      beeline::signal_on_stream(
          world(), peer, {.signal = &arrived_.data()[opposite(side)], .value = step.tag() + 1, .stream = &stream});
    }
  }

  Halves halves_;
  HostGosa gosa_;
  beeline::SymmetricArray<std::uint64_t> arrived_;  ///< [sides]: tag of the field whose plane is in the halo
  LaunchWindow window_;
  std::array<std::unique_ptr<beeline::Stream>, sides> copies_;
  std::array<std::unique_ptr<beeline::Event>, 4> computed_;  ///< [iteration % 2][half]
};

}  // namespace

MethodInfo host_copy_engine() {
  return MethodInfo::of<HostCopyEngine>(
      {"host_copy_engine", "the host starts copies of one half's planes while the other half is computed"});
}

}  // namespace himeno
