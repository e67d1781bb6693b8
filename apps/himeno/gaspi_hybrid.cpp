// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 9: the host controls kernels and transfers, by GASPI's C functions with GPU segments. As soon as a half is
/// computed, the host sends its planes by gaspi_gpu_write_notify while the other half is computed, and it waits for the
/// neighbours' planes by gaspi_notify_waitsome. The two pressure buffers are segments, in GPU memory on GPU ranks.
/// Sums travel as in the other methods of the host. GASPI's ranks are a world of their own beside the application's, so
/// a run begins and ends with a copy of the pressure between the domain's buffers and the segments.
/// Source: seed 000 section 4.4.5 (4.5.2 in the text) and figure 4.16.

#include "gaspi_hybrid.hpp"

#include <GASPI.h>
#include <GASPI_Ext.h>
#include <GASPI_GPU.h>

#include <array>
#include <string>

#include "halves.hpp"
#include "host_gosa.hpp"

namespace himeno {

namespace {

constexpr gaspi_queue_id_t queue = 0;

void require_success(gaspi_return_t result, const char* call) {
  beeline::require(result == GASPI_SUCCESS, beeline::Status::internal,
                   std::string(call) + ": " + gaspi_error_str(result));
}

/// This process as a GASPI rank.
class GaspiRank {
 public:
  explicit GaspiRank(const beeline::World& world) {
    require_success(gaspi_proc_init(GASPI_BLOCK), "gaspi_proc_init");
    gaspi_rank_t rank = 0, ranks = 0;
    require_success(gaspi_proc_rank(&rank), "gaspi_proc_rank");
    require_success(gaspi_proc_num(&ranks), "gaspi_proc_num");
    if (rank == world.rank() && ranks == world.size()) return;
    static_cast<void>(gaspi_proc_term(GASPI_BLOCK));
    throw beeline::Error(beeline::Status::unavailable,
                         "gaspi_hybrid needs ranks that are processes: GASPI says rank " + std::to_string(rank) +
                             " of " + std::to_string(ranks),
                         world.rank());
  }
  ~GaspiRank() { static_cast<void>(gaspi_proc_term(GASPI_BLOCK)); }
  GaspiRank(const GaspiRank&) = delete;
  GaspiRank& operator=(const GaspiRank&) = delete;
};

/// A segment of all ranks.
float* make_segment(gaspi_segment_id_t id, std::size_t bytes, bool on_gpu) {
  const gaspi_alloc_t policy = GASPI_MEM_INITIALIZED | (on_gpu ? gaspi_alloc_t{GASPI_MEM_GPU} : 0);
  require_success(gaspi_segment_create(id, bytes, GASPI_GROUP_ALL, GASPI_BLOCK, policy), "gaspi_segment_create");
  gaspi_pointer_t pointer = nullptr;
  require_success(gaspi_segment_ptr(id, &pointer), "gaspi_segment_ptr");
  return static_cast<float*>(pointer);
}

class GaspiHybrid final : public Method {
 public:
  explicit GaspiHybrid(Domain& domain)
      : Method(domain), gaspi_(world()), halves_(domain), gosa_(domain), fields_(domain.fields()), window_(world()) {
    const bool on_gpu = world().device().is_gpu();
    if (on_gpu) require_success(gaspi_gpu_init(), "gaspi_gpu_init");
    fields_.even = make_segment(0, domain.pressure_bytes(), on_gpu);
    fields_.odd = make_segment(1, domain.pressure_bytes(), on_gpu);
    for (auto& event : computed_) event = world().stream().make_event();
  }

  void iterate(int iterations, bool communicate) override {
    copy_pressure(domain().fields(), fields_);
    if (communicate) world().barrier();  // no plane comes before the copy
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      for (unsigned half = 0; half < 2; ++half) {
        if (step.needs_halos()) await_halos(half, step.iteration);
        halves_.launch(half, step.iteration, fields_);
        world().stream().record(*computed_[half]);
      }
      if (communicate) exchange(step);
      window_.advance();
    }
    if (communicate) finish_exchange(step);
    world().synchronize();
    copy_pressure(fields_, domain().fields());
  }

 private:
  void copy_pressure(const Fields& from, const Fields& to) {
    world().copy(to.even, from.even, domain().pressure_bytes());
    world().copy(to.odd, from.odd, domain().pressure_bytes());
  }

  /// Sends the planes of each half when it is computed, then the sums, one iteration late.
  void exchange(const Step& step) {
    gosa_.enqueue_sum(step, 2, halves_.blocks());
    for (unsigned half = 0; half < 2; ++half) send_planes(half, step.iteration + 1);
    if (step.iteration > 0) gosa_.exchange(previous(step));
    // The planes were read: the next iteration but one writes them.
    require_success(gaspi_wait(queue, GASPI_BLOCK), "gaspi_wait");
  }
  /// The last planes are received, too, so that no notification stays for the next run.
  void finish_exchange(const Step& step) {
    gosa_.exchange(previous(step));
    gosa_.finish(previous(step));
    for (unsigned half = 0; half < 2; ++half) await_halos(half, step.iteration);
  }
  [[nodiscard]] static Step previous(Step step) {
    --step.iteration;
    return step;
  }
  [[nodiscard]] static gaspi_segment_id_t segment_of(int iteration) {
    return static_cast<gaspi_segment_id_t>(iteration % 2);
  }

  void await_halos(unsigned half, int iteration) {
    for (unsigned side = 0; side < sides; ++side) {
      if (!halves_.touches(half, side)) continue;
      gaspi_notification_id_t id = 0;
      gaspi_notification_t value = 0;
      require_success(
          gaspi_notify_waitsome(segment_of(iteration), static_cast<gaspi_notification_id_t>(side), 1, &id, GASPI_BLOCK),
          "gaspi_notify_waitsome");
      require_success(gaspi_notify_reset(segment_of(iteration), id, &value), "gaspi_notify_reset");
    }
  }
  void send_planes(unsigned half, int iteration) {
    bool computed = false;
    for (unsigned side = 0; side < sides; ++side) {
      if (!halves_.touches(half, side)) continue;
      if (!computed) world().synchronize(*computed_[half]);
      computed = true;
      const Edge& edge = domain().edges().side[side];
      const gaspi_segment_id_t field = segment_of(iteration);
      require_success(
          gaspi_gpu_write_notify(field, offset_of(edge.mine), static_cast<gaspi_rank_t>(edge.peer), field,
                                 offset_of(edge.theirs), domain().plane_bytes(),
                                 static_cast<gaspi_notification_id_t>(opposite(side)), 1, queue, GASPI_BLOCK),
          "gaspi_gpu_write_notify");
    }
  }
  [[nodiscard]] static gaspi_offset_t offset_of(std::ptrdiff_t cells) {
    return static_cast<gaspi_offset_t>(cells) * sizeof(float);
  }

  GaspiRank gaspi_;
  Halves halves_;
  HostGosa gosa_;
  Fields fields_;  ///< the domain's, with the segments as pressure
  LaunchWindow window_;
  std::array<std::unique_ptr<beeline::Event>, 2> computed_;  ///< [half]
};

}  // namespace

MethodInfo gaspi_hybrid() {
  return MethodInfo::of<GaspiHybrid>(
      {"gaspi_hybrid", "the host sends planes by GASPI's gaspi_gpu_write_notify, between GPU segments"});
}

}  // namespace himeno
