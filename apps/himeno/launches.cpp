// SPDX-License-Identifier: Apache-2.0
/// @file
/// Measures the cost of launches: one rank's iterations of two kernels each, which the CPU launches one by one, or as
/// one CUDA graph. They are compared with kernels that a kernel launches (device_launched) and with one kernel for all
/// iterations (persistent). Only the launch queue bounds how far the CPU runs ahead: a full queue is to show in the
/// result.
/// Source: seed 000 section 5.8.3, figures 5.24 to 5.26.

#include "beeline/core/error.hpp"
#include "common/memory_budget.hpp"
#include "halves.hpp"
#include "method.hpp"
#include "peers/captured_graph.hpp"

namespace himeno {

namespace {

/// Sums up the last iteration's gosa. One rank needs no exchange.
struct SumHalves {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Sums sums, double* all,
                                      unsigned blocks) const {
    const double total = total_of_blocks(grid.block(), sums.threads, sums, 0, 2, blocks);
    if (grid.block().thread_rank() == 0) *all = total;
  }
};

class KernelByKernel : public Method {
 public:
  explicit KernelByKernel(Domain& domain) : Method(alone(domain)), halves_(domain) {}

 protected:
  void iterate(int iterations, bool communicate) override {
    launch_all(iterations);
    if (communicate)
      beeline::launch(world(), {}, SumHalves{}, domain().sums(), domain().mailbox().total, halves_.blocks());
    finish();
  }
  virtual void launch_all(int iterations) { enqueue(iterations); }
  void enqueue(int iterations) const {
    for (int iteration = 0; iteration < iterations; ++iteration)
      for (unsigned half = 0; half < 2; ++half) halves_.launch(half, iteration);
  }

 private:
  [[nodiscard]] static Domain& alone(Domain& domain) {
    beeline::require(domain.world().size() == 1, beeline::Status::unavailable,
                     "this method is for one rank: its kernels do not communicate");
    return domain;
  }

  Halves halves_;
};

/// The whole run is one graph, which is captured in the first run of this length.
class AsGraph final : public KernelByKernel {
 public:
  using KernelByKernel::KernelByKernel;

 private:
  void launch_all(int iterations) override {
    if (iterations != captured_) {
      graph_ = std::make_unique<beeline::bench::CapturedGraph>(world().stream(), [&] { enqueue(iterations); });
      captured_ = iterations;
    }
    graph_->launch();
  }

  std::unique_ptr<beeline::bench::CapturedGraph> graph_;
  int captured_ = 0;
};

std::string why_not_alone(const beeline::Config& config) {
  return config.size == 1 ? "" : "is for one rank: its kernels do not communicate";
}
std::string why_no_graph(const beeline::Config& config) {
  const std::string why = why_not_alone(config);
  return why.empty() ? apps::why_no_gpu(config) : why;
}

}  // namespace

std::vector<MethodInfo> launch_methods() {
  return {MethodInfo::of<KernelByKernel>(
              {"kernel_by_kernel", "the host launches both halves' kernels of each iteration", {}, why_not_alone}),
          MethodInfo::of<AsGraph>({"one_graph", "they are one CUDA graph", {}, why_no_graph})};
}

}  // namespace himeno
