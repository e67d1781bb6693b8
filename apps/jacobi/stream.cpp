// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method stream: the CPU only enqueues. The default stream waits for the neighbours' signals, computes the outermost
/// rows, and goes on with the other rows. Meanwhile a second stream puts the computed rows into the neighbours' halos
/// and sets the signals. Source: seed 003, GPUDirect Async (GDS): communication prepared beforehand, at the boundaries
/// of kernels.

#include "beeline/host/stream_operations.hpp"
#include "common/launch_window.hpp"
#include "method.hpp"
#include "update.hpp"

namespace jacobi {

namespace {

class OnStreams final : public Method {
 public:
  explicit OnStreams(Domain& domain)
      : Method(domain), edges_(domain, domain.edge(lower), domain.edge(upper)), interior_(domain, domain.interior()),
        arrived_(world(), sides), puts_(world().make_stream()), computed_(world().stream().make_event()),
        window_(world()) {}

  void run(int iterations, bool communicate) override {
    Step step = domain().take_steps(iterations, communicate);
    for (int done = 0; done < iterations; ++done, ++step.iteration) {
      if (step.needs_halos())
        for (unsigned side = 0; side < sides; ++side)
          if (const Edge& edge = domain().edges().side[side]; edge.open())
            beeline::wait_on_stream(world(),
                                    {.signal = &arrived_.data()[side], .value = step.tag(), .peer = edge.peer});
      edges_.enqueue(step.iteration);
      if (communicate) send_rows(step);
      interior_.enqueue(step.iteration);
      window_.advance();
    }
    world().synchronize();
    world().synchronize(*puts_);
  }

 private:
  /// A row is overwritten two iterations later, after a signal that the neighbour sent when it had received the row.
  /// Therefore no event has to delay the kernels until the put has read the row.
  void send_rows(const Step& step) {
    const Fields& f = domain().fields();
    float* field = f.before(step.iteration + 1);
    world().stream().record(*computed_);
    puts_->wait_event(*computed_);
    for (unsigned side = 0; side < sides; ++side) {
      const Edge& edge = domain().edges().side[side];
      if (!edge.open()) continue;
      beeline::put_signal_on_stream(
          world(), field + edge.theirs, field + edge.mine * f.row, domain().row_bytes(), static_cast<int>(edge.peer),
          {.signal = &arrived_.data()[opposite(side)], .value = step.tag() + 1, .stream = puts_.get()});
    }
  }

  Update edges_, interior_;
  beeline::Signals arrived_;  ///< [sides]: tag of the field whose row is in the halo
  std::unique_ptr<beeline::Stream> puts_;
  std::unique_ptr<beeline::Event> computed_;
  apps::LaunchWindow window_;
};

}  // namespace

MethodInfo stream() {
  return MethodInfo::of<OnStreams>(
      {"stream", "kernels, puts with signals, and waits for signals follow each other on streams, enqueued beforehand",
       "stream/peer/signal"});
}

}  // namespace jacobi
