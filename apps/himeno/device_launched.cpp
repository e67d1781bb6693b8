// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 7: the device launches. The CPU starts a control kernel of one block. For each iteration the control block
/// starts the kernels of both halves (CUDA dynamic parallelism, fire and forget), and itself communicates. A kernel
/// cannot wait for a kernel that it launched; therefore the halves' blocks count when they finish, and the control
/// block polls the counters.
///
/// A half's plane travels while the other half is computed, in the order of `stream_kernels`. The second half's kernel
/// is launched before the first has finished and queues behind it, so that only one launch latency is exposed per
/// iteration.
///
/// Relocatable device code: see CMakeLists.txt. Source: seed 000 section 5.8.3, figure 5.23.

#include "device_launched.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/runtime/device.hpp"
#include "common/last_block.hpp"
#include "common/memory_budget.hpp"

namespace himeno {

namespace {

/// One half of the slab, as its kernel computes it.
struct Half {
  Planes part;
  Tiling tiling;
  std::uint32_t* finished;  ///< blocks that have finished in this run, modulo 2^32
};

/// Leaves space on the device for the control block. Each block counts when it has finished, and waits for no other
/// block.
__global__ void update_half(Fields f, Half half, double* block_sums, int iteration) {
  const beeline::Grid<beeline::Block> grid({}, beeline::machine::block_rank(), beeline::machine::block_count(),
                                           nullptr);
  const double gosa = update_planes(grid, f, half.tiling, iteration, half.part);
  const double total = block_total(grid.block(), nullptr, gosa);
  if (grid.block().thread_rank() != 0) return;
  block_sums[grid.block_rank()] = total;
  apps::DeviceCounter(*half.finished).fetch_add(1, std::memory_order_release);
}

/// Data of the control block.
struct Plan {
  Fields fields;
  Edges edges;
  Sums sums;  ///< blocks: [2 (odd, even)][2 halves][max_blocks]
  Mailbox mailbox;
  Half halves[2];
  unsigned blocks;         ///< of a half's kernel
  std::uint64_t* arrived;  ///< [sides], symmetric: tag of the field whose plane is in the halo
  int* launch_error;       ///< host memory: the device runtime's error, 0 if none
};

template <class BlockGroup>
class Control {
 public:
  BEELINE_HOST_DEVICE Control(const BlockGroup& block, const beeline::Context& ctx, const Plan& plan)
      : block_(block), ctx_(ctx), plan_(plan) {}

  /// Waits for the halos that the half reads, and starts its kernel.
  [[nodiscard]] BEELINE_HOST_DEVICE bool start(unsigned half, const Step& step) const {
    if (plan_.halves[half].part.empty()) return true;
    if (step.needs_halos())
      for (unsigned side = 0; side < sides; ++side)
        if (touches(half, side) &&
            !is_ok(beeline::wait(block_, ctx_, &plan_.arrived[side], beeline::Compare::greater_equal, step.tag(),
                                 plan_.edges.side[side].peer)))
          return false;
    return is_ok(beeline::agree(block_, launch(half, step)));
  }

  /// Waits for the half's kernel to finish.
  [[nodiscard]] BEELINE_HOST_DEVICE bool finish(unsigned half, const Step& step) const {
    if (plan_.halves[half].part.empty()) return true;
    beeline::Status status = beeline::Status::ok;
    if (block_.thread_rank() == 0) {
      const std::uint32_t expected = plan_.blocks * static_cast<std::uint32_t>(step.iteration + 1);
      const apps::DeviceCounter finished(*plan_.halves[half].finished);
      status = beeline::poll_until(
          ctx_, {beeline::Operation::user, ctx_.rank, step.tag(), expected, beeline::Compare::equal},
          beeline::Timeout::none(), [&](std::uint64_t& observed) {
            // Relaxed until the condition holds: acquiring polls would drop the first-level cache under computing
            // blocks.
            observed = finished.load(std::memory_order_relaxed);
            return observed == expected && finished.load(std::memory_order_acquire) == expected;
          });
    }
    return is_ok(beeline::agree(block_, status));
  }

  /// Sends the half's outermost planes, which have been computed.
  BEELINE_HOST_DEVICE void send(unsigned half, const Step& step) const {
    if (!step.communicate) return;
    float* p = plan_.fields.pressure(step.iteration + 1);
    for (unsigned side = 0; side < sides; ++side) {
      const Edge& edge = plan_.edges.side[side];
      if (touches(half, side))
        beeline::put_signal(block_, ctx_, p + edge.theirs, p + edge.mine, static_cast<std::size_t>(plan_.edges.plane),
                            &plan_.arrived[opposite(side)], step.tag() + 1, edge.peer);
    }
  }

  /// Exchanges the sums of both halves, which have been computed.
  [[nodiscard]] BEELINE_HOST_DEVICE bool sum(const Step& step) const {
    if (!step.communicate) return true;
    const auto slot = static_cast<unsigned>(step.iteration % 2) * 2;
    const double total = total_of_blocks(block_, plan_.sums.threads, plan_.sums, slot, slot + 2, plan_.blocks);
    const bool good = is_ok(exchange_gosa(block_, ctx_, plan_.mailbox, step, total));
    block_.sync();  // the scratch is about to be reused
    return good;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static bool is_ok(beeline::Status status) { return status == beeline::Status::ok; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool touches(unsigned half, unsigned side) const {
    return plan_.edges.touched(side, plan_.halves[half].part);
  }

  /// Everything that the block has seen is visible to the kernel that its first thread launches.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status launch(unsigned half, const Step& step) const {
#if BEELINE_ON_GPU
    if (block_.thread_rank() != 0) return beeline::Status::ok;
    double* block_sums = plan_.sums.blocks + (static_cast<unsigned>(step.iteration % 2) * 2 + half) * max_blocks;
    update_half<<<plan_.blocks, Domain::gpu_threads, 0, cudaStreamFireAndForget>>>(plan_.fields, plan_.halves[half],
                                                                                   block_sums, step.iteration);
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return beeline::Status::ok;
    *plan_.launch_error = error;
    return beeline::Status::no_resource;
#else
    static_cast<void>(half), static_cast<void>(step);
    return beeline::Status::unavailable;
#endif
  }

  const BlockGroup& block_;
  const beeline::Context& ctx_;
  const Plan& plan_;
};

/// Runs iterations [step.iteration, end) of `iterations`; a failed wait is recorded, and ends the run.
struct RunIterations {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, const Plan& plan, Step step,
                                      int end, int iterations) const {
    const Control control(grid.block(), ctx, plan);
    Step before = step;
    for (const int first = step.iteration; step.iteration < end; ++step.iteration) {
      if (!control.start(0, step)) return;
      // While the first half is computed, the rest of the previous iteration is done.
      if (step.iteration > first) {
        control.send(1, before);
        if (!control.sum(before)) return;
      }
      if (!control.start(1, step)) return;
      if (!control.finish(0, step)) return;
      control.send(0, step);
      if (!control.finish(1, step)) return;
      before = step;
    }
    control.send(1, before);
    if (control.sum(before) && end == iterations && step.communicate)
      static_cast<void>(collect(grid.block(), ctx, plan.mailbox, before.tag()));
  }
};

class DeviceLaunched final : public Method {
 public:
  explicit DeviceLaunched(Domain& domain)
      : Method(on_gpu(domain)), block_sums_(world(), 4 * max_blocks), finished_(world(), 2), arrived_(world(), sides),
        launch_error_(world(), 1, beeline::Heap::pinned) {
    const beeline::KernelCode kernel{reinterpret_cast<const void*>(&update_half)};
    const int gpu = world().device().index;
    beeline::load_kernel(kernel, gpu);
    // All blocks of this rank's share of the device but one, which is left for the control block.
    const unsigned share = beeline::gpu_resident_blocks(kernel, Domain::gpu_threads, gpu) /
                           static_cast<unsigned>(world().ranks_on_device());
    plan_.blocks = std::clamp(share, 2u, max_blocks) - 1;
    plan_.fields = domain.fields(), plan_.edges = domain.edges(), plan_.mailbox = domain.mailbox();
    plan_.sums = {domain.sums().threads, block_sums_.data()};
    plan_.arrived = arrived_.data(), plan_.launch_error = launch_error_.data();
    const std::array<Planes, 2> parts = domain.halves();
    for (unsigned half = 0; half < 2; ++half)
      plan_.halves[half] = {parts[half], domain.tiling(plan_.blocks, parts[half].last - parts[half].first),
                            finished_.data() + half};
  }

  void iterate(int iterations, bool communicate) override {
    // The device runtime holds 2048 launches that it has not seen finish, and may see them finish only when their
    // parent ends.
    constexpr int iterations_of_a_kernel = 512;
    world().stream().fill(finished_.data(), 0, finished_.bytes());
    Step step{0, domain().take_tags(iterations), communicate};
    while (step.iteration < iterations) {
      const int end = std::min(step.iteration + iterations_of_a_kernel, iterations);
      beeline::launch(world(), {.threads = Domain::gpu_threads, .waits = true}, RunIterations{}, plan_, step, end,
                      iterations);
      step.iteration = end;
    }
    finish();
    const int error = *launch_error_.data();
    beeline::require(
        error == 0, beeline::Status::internal,
        std::string("a kernel launched from a kernel: ") + cudaGetErrorString(static_cast<cudaError_t>(error)));
  }

 private:
  [[nodiscard]] static Domain& on_gpu(Domain& domain) {
    beeline::require(domain.world().device().is_gpu(), beeline::Status::unavailable,
                     "kernels that launch kernels need a GPU, and this rank has none");
    return domain;
  }

  beeline::SymmetricArray<double> block_sums_;
  beeline::SymmetricArray<std::uint32_t> finished_;
  beeline::SymmetricArray<std::uint64_t> arrived_;
  beeline::SymmetricArray<int> launch_error_;
  Plan plan_{};
};

}  // namespace

MethodInfo device_launched() {
  return MethodInfo::of<DeviceLaunched>(
      {"device_launched", "a control block launches both halves' kernels and communicates", {}, apps::why_no_gpu});
}

}  // namespace himeno
