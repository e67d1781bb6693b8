// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method on_stream: a kernel for the local sum, followed on the stream by the library's all-reduce of one value.

#include "beeline/host/collectives.hpp"
#include "common/launch_window.hpp"
#include "method.hpp"

namespace global_reduction {

namespace {

class OnStream final : public Method {
 public:
  explicit OnStream(Values& values) : Method(values), collectives_(world(), {.sessions = 1}), window_(world()) {}

  void run(int reductions) override {
    for (int reduction = 0; reduction < reductions; ++reduction) {
      values().enqueue_local_sum();
      collectives_.allreduce_on_stream(values().global(), values().local(), 1, beeline::ElementType::float64,
                                       beeline::Reduction::sum);
      window_.advance();
    }
    world().synchronize();
  }

 private:
  beeline::Collectives collectives_;
  apps::LaunchWindow window_;
};

}  // namespace

MethodInfo on_stream() { return MethodInfo::of<OnStream>({"on_stream", "kernel, then an all-reduce on the stream"}); }

}  // namespace global_reduction
