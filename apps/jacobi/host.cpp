// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method host: the CPU drives, at the boundaries of kernels. It launches an iteration, waits for it, copies the
/// outermost rows into the neighbours' halos, signals the neighbours' CPUs, and waits for their signals. Nothing
/// overlaps. Source: seed 003, host-driven networking.

#include "beeline/device/signal.hpp"
#include "method.hpp"
#include "update.hpp"

namespace jacobi {

namespace {

class Host final : public Method {
 public:
  explicit Host(Domain& domain)
      : Method(domain), update_(domain, domain.all()), arrived_(world(), sides, beeline::Heap::pinned) {}

  void run(int iterations, bool communicate) override {
    Step step = domain().take_steps(iterations, communicate);
    for (int done = 0; done < iterations; ++done, ++step.iteration) {
      update_.enqueue(step.iteration);
      world().synchronize();
      if (communicate) exchange(step);
    }
  }

 private:
  void exchange(const Step& step) {
    for (unsigned side = 0; side < sides; ++side) start_copy(side, step);
    world().synchronize();
    for (unsigned side = 0; side < sides; ++side)
      if (const Edge& edge = domain().edges().side[side]; edge.open())
        beeline::signal(beeline::Thread{}, world().host_context(), &arrived_.data()[opposite(side)], step.tag() + 1,
                        edge.peer);
    for (unsigned side = 0; side < sides; ++side) await_row(side, step);
  }

  void start_copy(unsigned side, const Step& step) {
    const Fields& f = domain().fields();
    const Edge& edge = domain().edges().side[side];
    if (!edge.open()) return;
    float* field = f.before(step.iteration + 1);
    world().copy(world().at(field, static_cast<int>(edge.peer)) + edge.theirs, field + edge.mine * f.row,
                 domain().row_bytes(), world().stream());
  }

  void await_row(unsigned side, const Step& step) {
    const Edge& edge = domain().edges().side[side];
    if (!edge.open()) return;
    const beeline::Status status = beeline::wait(beeline::Thread{}, world().host_context(), &arrived_.data()[side],
                                                 beeline::Compare::greater_equal, step.tag() + 1, edge.peer);
    apps::require_ok(world(), status, "waiting for a neighbour's row");
  }

  Update update_;
  beeline::Signals arrived_;  ///< [sides]: tag of the field whose row is in the halo
};

}  // namespace

MethodInfo host() {
  return MethodInfo::of<Host>(
      {"host", "the CPU waits for each iteration's kernel, and copies its outermost rows", "host/copy_engine/signal"});
}

}  // namespace jacobi
